// Kernels by name, most FLOP first.
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string note_of(const KernelReport& k) {
  std::string note;
  if (k.work.varying > k.work.rounded) note += " varying";
  if (k.work.rounded > 0) note += " rounded";
  if (k.work.left_out > 0) note += " moves-left-out";
  if (k.work.doubtful > 0) note += " may-hold-moves";
  if (k.merged_launches > 0) note += " merged";
  if (k.opaque_launches > 0) note += " no-parameters";
  return note.empty() ? note : note.substr(1);
}

Section kernels_section(const Report& report) {
  Table table{"kernels",
              {{"kernel", "kernel"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"note", "note", Kind::kText, Worth::kDetail}}};
  table.long_list = true;
  table.when_empty = "no launches";
  for (const auto& k : report.kernels)
    table.rows.push_back({k.name, flop_cell(k.work), flop_share_cell(k.work, report.total),
                          k.work.launches, time_cell(k.work), note_of(k)});
  return {"Top kernels", {}, std::move(table), {}};
}

void kernels_json(Json& to, const Report& report) {
  to["kernels"] = list_json(report.kernels, [&](const KernelReport& k) {
    Json j;
    j["name"] = k.name;
    j["mangled"] = k.mangled;
    j["signatures"] = k.signatures;
    j.update(work_json(k.work));
    j["precision"] = precision_json(report, k.flop);
    add_integer_op(j, k.flop);
    if (k.merged_launches > 0) j["merged_parameter_launches"] = k.merged_launches;
    if (k.opaque_launches > 0) j["unknown_parameter_launches"] = k.opaque_launches;
    return j;
  });
}

}  // namespace

const Subject kKernels = {kernels_section, kernels_json};

}  // namespace flopinj::reduce
