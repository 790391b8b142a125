#include "sections/screens/comparison.h"

#include <algorithm>
#include <cmath>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

Cell cell(const auto& value) { return value ? Cell(*value) : Cell::none(); }

Table work_table(const char* key, const char* heading, const std::vector<ComparedWork>& works,
                 const Normalization& n) {
  Table table{key,
              {{"name", heading},
               {"change", "change", Kind::kText, Worth::kMain},
               {"launches_a", "launches A", Kind::kCount},
               {"launches_b", "launches B", Kind::kCount},
               {"flop_per_launch_a", "FLOP/launch A", Kind::kFlop},
               {"flop_per_launch_b", "FLOP/launch B", Kind::kFlop},
               {"flop_ratio", "FLOP B/A", Kind::kRatio, Worth::kMain},
               {"gpu_time_a_ns", "time A", Kind::kNanoseconds, Worth::kDetail},
               {"gpu_time_b_ns", "time B", Kind::kNanoseconds, Worth::kDetail},
               {"gpu_time_ratio", "time B/A", Kind::kRatio, Worth::kMain}}};
  table.long_list = true;
  for (const auto& w : works)
    table.rows.push_back({w.name, change_word(w.change), cell(w.launches.a), cell(w.launches.b),
                          cell(w.flop_per_launch.a), cell(w.flop_per_launch.b),
                          cell(w.flop.normalized(n)), cell(w.gpu_time_ns.a), cell(w.gpu_time_ns.b),
                          cell(w.gpu_time_ns.normalized(n))});
  return table;
}

std::string count_text(const std::vector<ComparedWork>& kernels, Change change) {
  const auto n = std::count_if(kernels.begin(), kernels.end(),
                               [&](const auto& k) { return k.change == change; });
  return std::to_string(n) + " " + change_word(change);
}

template <typename Value>
void plain_sides(Fields& f, const Pair<Value>& pair) {
  f("a", pair.a);
  f("b", pair.b);
}
void flop_sides(Fields& f, const Pair<u128>& pair) {
  f.flop("a", pair.a);
  f.flop("b", pair.b);
}

template <typename Value>
void pair_object(Fields& f, const char* key, const Pair<Value>& pair, const Normalization& n,
                 const char* about = "", void (*sides)(Fields&, const Pair<Value>&) = plain_sides) {
  f.object(key, about, [&](Fields& object) {
    sides(object, pair);
    object("ratio", pair.ratio(), "B / A; null where either is null or A is 0");
    object("normalized_ratio", pair.normalized(n),
           "the same after normalization; without one, and of figures per launch, equal to ratio");
  });
}

void compared_fields(Fields& f, const ComparedWork& w, const Normalization& n) {
  f("name", w.name);
  f("mangled", text_or_null(cut(w.mangled, 2048)),
    "of a kernel; null where it has another on each side, or is several of that name");
  f.word("change", change_word(w.change), {"appeared", "vanished", "changed", "same"},
         "changed: in FLOP or, without normalization, in launches; never in time only");
  pair_object(f, "launches", w.launches, n);
  pair_object(f, "flop", w.flop, n, "null while a launch is unmeasured", flop_sides);
  pair_object(f, "flop_per_launch", w.flop_per_launch, {});
  pair_object(f, "gpu_time_ns", w.gpu_time_ns, n);
  pair_object(f, "time_per_launch_ns", w.time_per_launch_ns, {});
}

void compared_list(Fields& f, const char* key, const std::vector<ComparedWork>& works,
                   const Normalization& n) {
  f.list(key, works, "", [&](Fields& row, const ComparedWork& w) {
    row.part("compared", [&](Fields& part) { compared_fields(part, w, n); });
  });
}

void run_fields(Fields& f, const Comparison& c) {
  pair_object(f, "hfu", c.hfu, {}, "executed FLOP / (wall time x peak), a share of 1");
  pair_object(f, "mfu", c.mfu, {}, "FLOP by formula / (wall time x peak), a share of 1");
  pair_object(f, "coverage", c.coverage, {}, "share of launches that have a FLOP count");
  pair_object(f, "backward_forward_ratio", c.backward_forward_ratio, {},
              "executed FLOP of backward / those of forward, of each side");
  pair_object(f, "step_time_ns", c.step_time_ns, c.normalization,
              "median wall time of a training step");
}

void comparison_fields(Fields& f, const Comparison& c) {
  const Normalization& n = c.normalization;
  f.version();
  f("simulated", c.simulated, "at least one side was recorded on simgpu");
  f.object_if(!n.name.empty(), "normalization",
              "--normalize NAME=A,B: what A's and B's figures are divided by in normalized_ratio",
              [&](Fields& by) {
                by("name", n.name);
                by("a", n.a);
                by("b", n.b);
              });
  f.object("total", "", [&](Fields& total) {
    total.part("compared", [&](Fields& part) { compared_fields(part, c.total, n); });
  });
  run_fields(f, c);
  compared_list(f, "phases", c.phases, n);
  compared_list(f, "kernels", c.kernels, n);
  f.object("kernel_counts", "kernels by what changed", [&](Fields& counts) {
    for (const Change change :
         {Change::kAppeared, Change::kVanished, Change::kChanged, Change::kSame})
      counts(change_word(change),
             static_cast<uint64_t>(std::ranges::count(c.kernels, change, &ComparedWork::change)));
  });
  gate_fields(f, c.gates);
}

// "1.2 % more", of a ratio that is not 1.
std::string change_text(double ratio, const char* more, const char* less) {
  return percent_text(std::fabs(ratio - 1)) + (ratio > 1 ? more : less);
}

// The answer in one sentence. Ratios are after normalization.
std::string verdict(const Comparison& c) {
  const auto flop = c.total.flop.normalized(c.normalization);
  const auto time = c.total.gpu_time_ns.normalized(c.normalization);
  if (!c.total.flop.a || !c.total.flop.b)
    return std::string("FLOP cannot be compared: ") + (c.total.flop.a ? "B" : "A") +
           " has launches without a FLOP count";
  std::string text = "B executes ";
  if (!flop)
    text += *c.total.flop.b == 0 ? "no FLOP, like A" : "FLOP, A none";
  else if (same_flop(c.total, c.normalization))
    text += "the same FLOP as A";
  else
    text += change_text(*flop, " more FLOP than A", " fewer FLOP than A");
  if (!time) return text + "; GPU time cannot be compared";
  text += *time == 1 ? " in the same GPU time"
                     : " in " + change_text(*time, " more GPU time", " less GPU time");
  if (flop) text += ": " + fixed(*flop / *time, 4) + " times the FLOP/s";
  return text;
}

// "0.9990", "A 118.8 MFLOP, B 118.7 MFLOP". Nothing where neither side has the figure.
template <typename Value>
void add_figure(std::vector<ShownFigure>& figures, const char* name, const Pair<Value>& pair,
                const Normalization& n, std::string (*text)(Value)) {
  if (!pair.a && !pair.b) return;
  const auto ratio = pair.normalized(n);
  const auto side = [&](const auto& value) { return value ? text(*value) : "-"; };
  figures.push_back({name, ratio ? fixed(*ratio, 4) : "-",
                     "A " + side(pair.a) + ", B " + side(pair.b),
                     ratio ? Tone::kTitle : Tone::kDim});
}
std::string flop_text(u128 flop) { return to_human(flop, "FLOP"); }
std::string median_text(double ns) { return to_human_time(static_cast<u128>(ns)); }
std::string ratio_text(double ratio) { return fixed(ratio, 3); }

std::vector<ShownFigure> comparison_figures(const Comparison& c) {
  const Normalization& n = c.normalization;
  std::vector<ShownFigure> figures;
  add_figure(figures, "Executed", c.total.flop, n, flop_text);
  add_figure(figures, "Per step", c.step_time_ns, n, median_text);
  add_figure(figures, "HFU", c.hfu, {}, percent_text);
  add_figure(figures, "MFU", c.mfu, {}, percent_text);
  add_figure(figures, "Kernel time", c.total.gpu_time_ns, n, to_human_time);
  add_figure(figures, "Backward/fwd", c.backward_forward_ratio, {}, ratio_text);
  add_figure(figures, "Coverage", c.coverage, {}, percent_text);
  return figures;
}

// The programs of both sides, and their GPUs: once where both have the same.
void add_sides(std::vector<Line>& lines, const Report& a, const Report& b) {
  const std::vector<Line> of_a = screen_program(a), of_b = screen_program(b);
  const auto gpus = [](const std::vector<Line>& side) {
    return side.size() > 1 ? side[1].parts.front().first : std::string();
  };
  const bool alike = gpus(of_a) == gpus(of_b);
  for (const auto& [name, side] : {std::pair("A  ", &of_a), std::pair("B  ", &of_b)}) {
    if (side->empty()) continue;
    Line line(name);
    for (const auto& [text, tone] : side->front().parts) line.then(text, tone);
    if (!alike) line.then("   " + gpus(*side), Tone::kDim);
    lines.push_back(std::move(line));
  }
  if (alike && !gpus(of_a).empty()) lines.emplace_back("   " + gpus(of_a), Tone::kDim);
}

}  // namespace

std::vector<Section> comparison_sections(const Comparison& c, const Report& a, const Report& b) {
  const Normalization& n = c.normalization;
  std::vector<Section> sections;
  Section head;
  if (c.simulated)
    head.above.emplace_back("SIMULATED: at least one side was recorded on simgpu.", Tone::kWarn);
  add_sides(head.above, a, b);
  head.above.emplace_back(verdict(c) + ".", Tone::kTitle);
  head.above.emplace_back(n.name.empty() ? "Ratios are B / A."
                                         : "Ratios are B / A after dividing by " + n.name + ": " +
                                               format_si(n.a) + " and " + format_si(n.b) + ".");
  head.above.emplace_back("");
  head.figures = comparison_figures(c);
  sections.push_back(std::move(head));
  std::vector<ComparedWork> phases = {c.total};
  phases.insert(phases.end(), c.phases.begin(), c.phases.end());
  sections.push_back(
      {"Total and phases", {}, work_table("compared_phases", "phase", phases, n), {}});
  sections.push_back(
      {"Kernels",
       {"  " + count_text(c.kernels, Change::kAppeared) + ", " +
        count_text(c.kernels, Change::kVanished) + ", " + count_text(c.kernels, Change::kChanged) +
        ", " + count_text(c.kernels, Change::kSame)},
       work_table("compared_kernels", "kernel", c.kernels, n),
       {}});
  return sections;
}

Json comparison_json(const Comparison& c) {
  return Fields::json_of([&](Fields& f) { comparison_fields(f, c); });
}

Json comparison_schema() {
  return Fields::schema_of(
      "flopreduce compare",
      "What changed from recording A to recording B: null where a side has none of a name, or its "
      "figure is not known. Times are nanoseconds.",
      [](Fields& f) { comparison_fields(f, {}); });
}

Json comparison_gate_json(const Comparison& c) {
  Comparison with_absent = c;
  with_absent.phases.insert(with_absent.phases.end(), c.absent_phases.begin(),
                            c.absent_phases.end());
  return comparison_json(with_absent);
}

}  // namespace flopinj::reduce
