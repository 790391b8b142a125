#include "passes/reducer.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <tuple>

#include "flop_trace_fields.h"
#include "passes/definitions.h"
#include "passes/launches.h"
#include "passes/lost_ledger.h"
#include "passes/lost_reading.h"
#include "passes/merged_classes.h"
#include "passes/rows/device_times.h"
#include "passes/rows/kernel_durations.h"
#include "passes/sequence/sequence_pass.h"
#include "passes/step_pass.h"
#include "reader/message.h"
#include "reader/packet_reader.h"
#include "report/build_report.h"
#include "support/forget.h"
#include "support/text.h"
#include "support/wide.h"
#include "tables/formulas.h"

namespace flopinj::reduce {
namespace {

std::optional<trace::Header> header_in(const Packet& packet) {
  trace::Header header;
  if (packet.body_field != static_cast<uint32_t>(trace_fields::TracePacketField::header) ||
      !parse_message(header, packet.body))
    return std::nullopt;
  return header;
}

// 0 where it is lost.
uint64_t session_of(const TraceOrder& order) { return std::get<uint64_t>(order); }

// Damage by the name of the file it is in: for a summary, of the process, or of the file that the
// recording was made of, which older summaries say.
class SourceDamage {
 public:
  DamageLog& of(const std::string& file) { return logs_[file]; }
  void list(Report& report) const {
    for (const auto& [file, log] : logs_) {
      for (size_t k = 0; k < kDamageKinds; ++k)
        if (const uint64_t count = log.count(static_cast<Damage>(k)); count != 0)
          report.damage.push_back({file, static_cast<Damage>(k), count});
      report.partial = report.partial || log.partial();
    }
  }

 private:
  std::map<std::string, DamageLog> logs_;
};

// Of skipped steps: their launches are none that the trace's ledger counts, and time counts from
// the first step that is left, or from when the device that came to it first did.
void note_skipped(TraceTables& tables, const Totals& totals) {
  std::vector<std::optional<uint64_t>> until(tables.traces.size());
  for (size_t i = 0; i < tables.devices.size(); ++i) {
    Device& device = tables.devices[i];
    const DeviceTime& time = totals.devices[i];
    const auto leave_out = [&](uint64_t& count) {
      count -= std::min(count, time.skipped.launches);
    };
    leave_out(device.ledger_launches);
    leave_out(device.ledger_recorded);
    if (time.placed + time.unplaced == 0) continue;
    auto& first = until[device.trace];
    first = std::min(first.value_or(UINT64_MAX), time.skipped.end_ns);
  }
  for (size_t i = 0; i < tables.traces.size(); ++i) {
    TraceState& trace = tables.traces[i];
    if (!trace.skipped_steps.any()) continue;
    const auto first = trace.steps.steps().find(trace.skipped_steps.first);
    if (first == trace.steps.steps().end()) continue;
    trace.counts_from_ns = std::max(first->second.start_ns,
                                    trace.skipped_steps.begin_ns > 0 ? until[i].value_or(0) : 0);
  }
}

// Something in the middle is lost, and nobody knows of which phase; a trace that was cut is whole
// as far as it goes.
bool lacks_launches(const Report& report) {
  return std::any_of(report.damage.begin(), report.damage.end(), [](const DamageReport& d) {
    const bool cut = d.kind == Damage::kTornTail || d.kind == Damage::kStopped;
    return damage_text(d.kind).partial && !cut;
  });
}

}  // namespace

Reducer::Reducer(ReduceOptions options) : options_(std::move(options)) {}
Reducer::~Reducer() = default;

void Reducer::add(const std::string& path) {
  auto opened = Input::open(path, options_.counters);
  if (auto* error = std::get_if<InputError>(&opened))
    errors_.push_back(std::move(*error));
  else
    add(std::move(std::get<std::unique_ptr<Input>>(opened)));
}

void Reducer::add(std::unique_ptr<Input> input) {
  DamageLog ignored;
  PacketReader reader(*input, ignored, Batches::kCheck);
  Packet first;
  const std::string name = printable(input->name());
  if (!reader.next(first)) {
    errors_.push_back(
        {name + ": " + (input->read_failed() ? "cannot be read" : input->not_a_trace()), false});
    return;
  }
  const std::optional<trace::Header> header = header_in(first);
  if (header && header->format_major() != kFormatMajor) {
    errors_.push_back({name + ": " + other_version(header->format_major()), false});
    return;
  }
  const bool knows_kind = header && !stands_for_lost(*header);
  if (knows_kind && !one_kind(name, header->simulated())) return;
  files_.push_back({std::move(input),
                    first.sequence,
                    {},
                    trace_order(header ? &*header : nullptr),
                    knows_kind && header->simulated()});
}

void Reducer::leave_out(const std::string& name, bool simulated) {
  const auto on = [](bool of_simgpu) {
    return of_simgpu ? " on the simulated GPU" : " on a real GPU";
  };
  errors_.push_back({name + ": left out: it was recorded" + on(simulated) + ", " + kind_->first +
                         on(!simulated) + "; give traces of one kind",
                     false});
}

// Simulated and real launches are never added up. Where there are traces of both, the real ones are
// meant, in whatever order they come.
bool Reducer::one_kind(const std::string& name, bool simulated) {
  if (!kind_) kind_ = {name, simulated};
  if (kind_->second == simulated) return true;
  if (simulated) {
    leave_out(name, true);
    return false;
  }
  kind_ = {name, false};
  std::erase_if(files_, [&](const TraceFile& file) {
    if (file.simulated) leave_out(printable(file.input->name()), true);
    return file.simulated;
  });
  return true;
}

void Reducer::first_pass(TraceTables& tables) {
  Router router(tables);
  if (!chosen_.empty()) router.use_copies(chosen_);
  if (kind_) router.use_only(kind_->second);
  DefinitionPass definitions(tables);
  if (options_.facts) definitions.read_single_steps();
  uint32_t at_hand = kNoIndex;
  for (uint32_t i = 0; i < files_.size(); ++i) {
    TraceFile& file = files_[i];
    const auto note = [&](uint32_t trace, Packet& packet) {
      if (!segments_.note(i, *file.input, router.current(), router.sequence_before(), packet))
        file.damage.add(Damage::kTableFull);
      if (trace == kNoIndex || packet.is_batch()) return;
      if (!revisions_.newest_so_far(trace, i, packet, file.damage)) return;
      if (at_hand != trace && at_hand != kNoIndex) tables.end_trace(at_hand);
      at_hand = trace;
      TraceState& state = tables.traces[trace];
      definitions.packet(trace, packet, state.has_summary ? state.damage : file.damage);
    };
    for_each_packet(*file.input, i, router, Batches::kSkip, file.damage, note);
    if (router.left_out() > 0)
      leave_out(printable(file.input->name()) + ", " + to_grouped(router.left_out()) +
                    " of its recordings",
                !kind_->second);
  }
  definitions.end_steps();
  for (TraceState& trace : tables.traces) forget(trace.function_facts);  // signatures have them
  copies_ = router.copies();
  segments_.end();
}

void Reducer::choose_copies() {
  std::vector<Input*> inputs;
  for (const uint32_t i : copies_) inputs.push_back(files_[i].input.get());
  for (const auto& [session, source] : options_.choose_copies(inputs)) {
    std::optional<uint32_t>& chosen = chosen_[session];
    for (const uint32_t i : copies_)
      if (files_[i].input.get() == source) chosen = i;
  }
}

unsigned Reducer::jobs_wanted() const {
  if (options_.jobs != 0) return options_.jobs;
  return std::min(kMostJobs, std::max(1U, std::thread::hardware_concurrency()));
}

// Traces of which more comes when all else was read.
std::set<uint32_t> Reducer::revised() const {
  std::set<uint32_t> traces;
  for (const auto& place : revisions_.newest()) traces.insert(place.trace);
  return traces;
}

SecondPass Reducer::pass_over(SharedTables& shared) {
  return {.shared = shared,
          .segments = segments_,
          .revisions = revisions_,
          .files = files_,
          .jobs = jobs_wanted()};
}

Totals Reducer::second_pass(TraceTables& tables, const PhaseMap& phases, SharedTables& shared) {
  SecondPass pass = pass_over(shared);
  pass.progress = options_.progress;
  const KernelNumbers kernels(tables.signatures);
  std::vector<std::unique_ptr<KernelDurations>> durations;
  std::vector<std::unique_ptr<StepPass>> steps;
  // What is skipped follows from the steps, and single steps are in the files' order.
  if (options_.lost && skips() == 0)
    lost_ =
        std::make_unique<LostReading>(tables, options_.rules, phases, segments_.all(), revised());
  const bool with_steps =
      lost_ && !options_.facts &&
      std::ranges::any_of(tables.traces, [](const TraceState& trace) { return trace.steps.any(); });
  if (options_.launch_times || lost_)
    pass.consumer = [&] {
      const bool first = pass.consumers.empty();
      if (first) {
        durations.clear();
        steps.clear();
      }
      const auto one_of = [&](auto& all, bool wanted, auto&& make) {
        if (wanted) all.push_back(make());
        return wanted ? all.back().get() : nullptr;
      };
      return std::make_unique<Consumers>(std::initializer_list<LaunchConsumer*>{
          one_of(durations, options_.launch_times,
                 [&] { return std::make_unique<KernelDurations>(tables, kernels); }),
          one_of(steps, with_steps,
                 [&] { return std::make_unique<StepPass>(tables, false, &lost_->room()); }),
          lost_ ? &lost_->consumer(first) : nullptr});
    };
  Totals totals = pass.run();
  depends_on_threads_ = pass.depends_on_threads;
  if (depends_on_threads_) lost_.reset();
  if (with_steps && lost_) {
    in_first<StepPass>(steps);
    steps_ = std::move(steps.front());
  }
  for (size_t i = 0; i < tables.traces.size(); ++i)
    tables.traces[i].damage.add(pass.damage_of_trace[i]);
  for (size_t i = 0; i < files_.size(); ++i) files_[i].damage.add(pass.damage_of_file[i]);
  for (size_t i = 0; i < tables.devices.size(); ++i) {
    const Device& device = tables.devices[i];
    if (device.times && !read_device_times(*device.times, tables.traces[device.trace].signatures,
                                           totals.devices[i]))
      tables.traces[device.trace].damage.add(Damage::kBadTime);
  }
  if (options_.launch_times) in_first<KernelDurations>(durations).give(totals);
  return totals;
}

std::pair<OperatorCalls, ForwardNumbers> Reducer::sequence_pass(const TraceTables& tables,
                                                                PhaseMap& phases,
                                                                const OperatorMap& operators) {
  if (!operators.any()) return {};
  SequencePass pass(tables, options_.rules, phases, operators);
  pass.read(segments_);
  OperatorCalls calls = pass.take();
  phases.use_again(pass.take_again());
  return {std::move(calls), pass.take_numbers(false)};
}

void Reducer::finish_steps(const ReportSources& sources, const StepLaunches& each, StepPass& steps,
                           Totals& totals, Report& report) {
  const TraceTables& tables = sources.tables;
  StepsRead read = steps.take();
  for (uint32_t i = 0; i < tables.devices.size(); ++i)
    if (const SkippedLaunches& skipped = totals.devices[i].skipped; skipped.launches > 0)
      read.kernels[tables.devices[i].trace].skipped(i, skipped.end_ns);
  const auto launch = [&](size_t trace, uint32_t device, uint32_t signature) -> const StepLaunch& {
    return each.of(trace, device, signature);
  };
  add_step_work(tables, options_.utilization, std::move(read), launch, options_.facts, report);
  add_step_numbers(report);
}

void Reducer::worth_pass(SharedTables& shared, const ReportSources& sources, Totals& totals,
                         Report& report) {
  const TraceTables& tables = sources.tables;
  std::optional<StepLaunches> each;
  std::optional<ModelWork> model;
  SecondPass pass = pass_over(shared);
  pass.only_consumers = true;
  if (report.steps.processes > 0) {
    each.emplace(tables, totals, sources.work, sources.formulas, options_.utilization.peaks);
    model.emplace(sources, report);
  }
  const auto finish = [&](StepPass& steps) {
    steps.use(*each, *model);
    finish_steps(sources, *each, steps, totals, report);
    each.reset();
  };
  const auto step_consumer = [&] {
    auto steps = std::make_unique<StepPass>(tables, options_.facts, nullptr);
    steps->use(*each, *model);
    return steps;
  };
  const auto can_have_ledger = [&] {
    if (!options_.lost) return false;
    report.lost.missing = no_ledger(tables, totals, skips(), report);
    return report.lost.known();
  };
  // Which launches the ledger counts may depend on the steps: then these are read first.
  bool lost = skips() == 0 && can_have_ledger();
  if (each && steps_ && !steps_->given_up()) finish(*steps_);
  if (each && !lost) {
    if (options_.facts) pass.jobs = 1;
    pass.consumer = step_consumer;
    pass.run();
    finish(pass.joined<StepPass>());
  }
  if (skips() > 0) lost = can_have_ledger();
  if (!lost) return;
  const LaunchGuesses guesses(tables, options_.rules, sources.phases);
  LaunchWorths worths(sources, report, !no_work(report).empty());
  LostLedger ledger(sources, report);
  std::vector<bool> left(tables.traces.size(), true);
  if (lost_) left = lost_->value(worths, totals, ledger);
  std::vector<std::unique_ptr<StepPass>> steps;
  std::vector<std::unique_ptr<LostPass>> of_lost;
  const std::set<uint32_t> of_revisions = revised();
  // Traces whose parts do not fit are left. Single steps are in the files' order.
  const auto read = [&](std::vector<bool> in_parts) {
    std::mutex lock;
    const std::vector<bool> only = std::exchange(left, std::vector<bool>(left.size(), false));
    const LostParts::Ended ended = [&](uint32_t trace, LostPass::Devices devices) {
      if (std::ranges::all_of(devices, [](auto& of) { return of.second.clean(); }))
        return ledger.add(trace, devices);
      const std::lock_guard guard(lock);
      left[trace] = true;
    };
    const bool with_steps = each && steps.empty();
    if (with_steps)
      pass.only_traces.clear();
    else
      pass.only_traces = only;
    pass.jobs = jobs_wanted();
    if (!of_revisions.empty() || depends_on_threads_ || (with_steps && options_.facts))
      pass.jobs = 1;
    pass.whole_traces = in_parts;
    pass.whole_traces.flip();
    LostParts parts(segments_.all(), std::move(in_parts), nullptr, ended);
    const bool first = of_lost.empty();
    pass.consumer = [&] {
      if (with_steps) steps.push_back(step_consumer());
      of_lost.push_back(std::make_unique<LostPass>(
          LostPass::Reading{.tables = tables,
                            .guesses = guesses,
                            .parts = parts,
                            .only = only,
                            .revised = of_revisions,
                            .ended = ended,
                            .collectives = !lost_ && first,
                            .totals = &totals,
                            .worths = &worths,
                            .windows = skips() > 0 ? &report.steps.windows : nullptr}));
      return std::make_unique<Consumers>(std::initializer_list<LaunchConsumer*>{
          with_steps ? steps.back().get() : nullptr, of_lost.back().get()});
    };
    pass.run();
    for (const auto& one : of_lost) one->end();
  };
  const auto any_left = [&] { return std::ranges::find(left, true) != left.end(); };
  std::vector<bool> in_parts(tables.traces.size(), skips() == 0 && !depends_on_threads_);
  for (uint32_t i = 0; i < in_parts.size(); ++i)
    if (tables.traces[i].has_summary || of_revisions.contains(i)) in_parts[i] = false;
  if (each || any_left()) read(std::move(in_parts));
  if (any_left()) read(std::vector<bool>(left.size(), false));
  if (each) finish(in_first<StepPass>(steps));
  LostPass::Uneven uneven;
  Collectives none;
  Collectives* collectives = lost_ ? &lost_->collectives() : &none;
  if (!of_lost.empty()) {
    LostPass& all = in_first<LostPass>(of_lost);
    uneven = all.uneven();
    if (!lost_) collectives = &all.collectives();
  }
  ledger.finish(*collectives, uneven, worths.unknown());
}

// Of a recording in a summary the files are gone that it was made of.
DamageLog& Reducer::damage_of(TraceState& trace) {
  return trace.has_summary ? trace.damage : files_[trace.inputs.back()].damage;
}

void Reducer::note_missing_ends(TraceTables& tables) {
  for (auto& trace : tables.traces) {
    DamageLog& damage = damage_of(trace);
    if (!trace.has_header) damage.add(Damage::kNoHeader);
    trace.goes_on =
        !trace.has_end && !trace.has_summary && files_[trace.inputs.back()].input->being_written();
    if (!trace.has_end)
      damage.add(trace.goes_on ? Damage::kGoesOn : Damage::kNoEnd);
    else if (!trace.complete())
      damage.add(Damage::kStopped);
  }
}

// All that was found in the trace: in its files, and, of a recording in a summary, when the summary
// was made.
std::string Reducer::damage_line(const TraceState& trace) const {
  DamageLog all;
  if (trace.has_summary)
    all.add(trace.damage);
  else
    for (const uint32_t file : trace.inputs) all.add(files_[file].damage);
  for (const auto& source : trace.summary.source())
    for (const auto& line : source.damage())
      if (const auto kind = damage_of_code(line.kind())) all.add(*kind, line.count());
  std::string text;
  for (size_t k = 0; k < kDamageKinds; ++k)
    if (const auto kind = static_cast<Damage>(k); all.count(kind) != 0)
      text += (text.empty() ? "" : ", ") + std::string(damage_text(kind).code) + " " +
              std::to_string(all.count(kind));
  return text;
}

void Reducer::name_sources(const TraceTables& tables, Report& report) const {
  SourceDamage damage;
  for (const auto& file : files_) damage.of(file.input->name()).add(file.damage);
  for (size_t i = 0; i < tables.traces.size(); ++i) {
    const TraceState& trace = tables.traces[i];
    auto& names = report.traces[i].files;
    if (!trace.has_summary) {
      for (const uint32_t file : trace.inputs) names.push_back(files_[file].input->name());
      continue;
    }
    for (const auto& source : trace.summary.source()) {
      if (!source.file().empty()) names.push_back(source.file());
      const std::string& name = source.file().empty() ? report.traces[i].name : source.file();
      for (const auto& line : source.damage())
        if (const auto kind = damage_of_code(line.kind())) damage.of(name).add(*kind, line.count());
    }
    damage.of(names.empty() ? report.traces[i].name : names.back()).add(trace.damage);
  }
  for (size_t i = 0; i < tables.traces.size(); ++i)
    report.traces[i].damage = damage_line(tables.traces[i]);
  damage.list(report);
  if (lacks_launches(report)) report.ratio.leave_undecided("parts of the traces are lost");
  for (const auto& error : errors_) report.errors.push_back(error.message);
  report.partial = report.partial || !errors_.empty();
}

// Traces by their process; parts of one trace together, in the order they were written.
void Reducer::sort_files() {
  std::map<uint64_t, TraceOrder> first;  // of a session's headers, should they disagree
  for (const auto& file : files_) {
    const auto [entry, fresh] = first.try_emplace(session_of(file.order), file.order);
    if (!fresh) entry->second = std::min(entry->second, file.order);
  }
  for (auto& file : files_)
    if (session_of(file.order) != 0) file.order = first[session_of(file.order)];
  std::stable_sort(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.order, a.first_sequence) < std::tie(b.order, b.first_sequence);
  });
}

Report Reducer::run() {
  sort_files();
  const size_t errors = errors_.size();
  std::optional<TraceTables> read;
  first_pass(read.emplace());
  if (!copies_.empty() && options_.choose_copies) {
    choose_copies();
    errors_.resize(errors);
    segments_ = {};
    revisions_ = {};
    for (TraceFile& file : files_) file.damage = {};
    first_pass(read.emplace());
  }
  TraceTables& tables = *read;
  tables.join();
  skip_steps(options_.utilization.skip_steps, tables);
  const GivenNames::Applied names =
      options_.names.any() ? options_.names.apply(tables) : GivenNames::Applied{};
  PhaseMap phases(options_.rules, tables);
  const OperatorMap operators(tables, phases, nullptr, &options_.formulas);
  const auto [calls, numbers] = sequence_pass(tables, phases, operators);
  const NumberSource source{tables, operators, numbers};
  SharedTables shared(tables, phases, options_.facts ? RowsBy::kThread : RowsBy::kReport);
  if (options_.flop_over_time) shared.keep_flop_over_time(options_.rules, options_.fma);
  if (numbers.any()) shared.use_numbers(source);
  shared.use_step_names(calls.steps);
  Totals totals = second_pass(tables, phases, shared);
  note_skipped(tables, totals);
  fold_into_merged_classes(tables, totals);
  Formulas formulas(options_.fma);
  WorkTable work(tables, totals, formulas);
  const ReportSources sources{
      tables,   totals, options_.rules,       phases,         operators,         calls,
      formulas, work,   options_.utilization, options_.facts, &options_.formulas};
  note_missing_ends(tables);
  Report report = build_report(sources);
  // The report has these: a job may have very many ranks.
  totals.facts.clear();
  for (DeviceTime& device : totals.devices) forget(device.flop);
  totals.timed_rows = {};
  if (!options_.launches) tables.samples_by_device = {};
  for (TraceState& state : tables.traces) trace::Energy().Swap(&state.energy);
  report.with_facts = options_.facts;
  worth_pass(shared, sources, totals, report);
  for (TraceState& state : tables.traces) state.steps.forget_single();
  report.given_names_unused = names.none;
  for (const GivenFormula* formula : options_.formulas.all()) {
    const auto& places = report.operators.places;
    if (std::ranges::find(places, formula->source, &OperatorReport::given) == places.end())
      report.unused_formulas.push_back(formula->source);
  }
  if (names.full) damage_of(tables.traces.front()).add(Damage::kTableFull);
  if (report.total.overflow) damage_of(tables.traces.front()).add(Damage::kOverflow);
  if (!report.ledger.disagreements.empty())
    damage_of(tables.traces.front()).add(Damage::kLedger, report.ledger.disagreements.size());
  name_sources(tables, report);
  if (options_.launches) {
    SharedTables by_thread(tables, phases, RowsBy::kThread);
    if (numbers.any()) by_thread.use_numbers(source);
    by_thread.use_step_names(calls.steps);
    Launches launches(tables, totals, options_.rules, formulas, options_.utilization.peaks,
                      [&](std::unique_ptr<LaunchConsumer> consumer) {
                        SecondPass pass = pass_over(by_thread);
                        pass.only_consumers = true;
                        pass.jobs = 1;
                        pass.consumer = [&] { return std::move(consumer); };
                        pass.run();
                      });
    options_.launches(launches);
  }
  return report;
}

}  // namespace flopinj::reduce
