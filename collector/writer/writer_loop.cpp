#include <collector/writer/writer_loop.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace flopinj {
namespace {

// Releases that a launch waits for its time: with the default period, under a second until it is in
// the file.
constexpr uint32_t kMaxAge = 2;

}  // namespace

WriterLoop::WriterLoop(CollectorState& state, std::unique_ptr<Sink> sink,
                       const ProcessInfo& process)
    : state_(state),
      process_(process),
      writer_(std::move(sink)),
      host_clock_([&state] { return state.now(); }, state.hooks.clock_error_ns),
      merger_(state.config.expect_times, !process.simulated_clock),
      output_(
          writer_, state.config.level, [&state] { return state.now(); },
          [&state] { return state.real_now(); }),
      steps_(writer_, state.config.level),
      copies_(writer_, state.config.level),
      definitions_(state),
      ledger_(state),
      next_flush_ns_(state.real_now()),
      next_look_(Clock::now()),
      next_energy_(next_look_) {
  state_.scheduler.begin(state_.program_now(), process_.session_id);
}

void WriterLoop::run() noexcept {
  try {
    state_.control.with_edge([&] {
      if (state_.hooks.thread_started) state_.hooks.thread_started();
    });
    writer_.header(process_, state_.config.level);
    written_ns_ = state_.now();
    if (!writer_.flush()) fail_to_write();  // whatever comes now, the trace says whose it is
  } catch (const std::exception& error) {
    fail(error.what());
  }
  state_.control.has_begun();
  for (;;) {
    const auto request =
        state_.control.wait(std::chrono::milliseconds(state_.config.drain_period_ms));
    if (request.abandoned) break;
    try {
      step(request);
    } catch (const std::exception& error) {
      fail(error.what());
    }
    if (request.flush) state_.control.flushed(request.ticket);
    if (request.close || program_ended()) break;
  }
  state_.control.with_edge([&] {
    if (state_.hooks.thread_ended) state_.hooks.thread_ended();
  });
  state_.control.finished();
}

// The end of a program whose main thread ended before its others.
bool WriterLoop::program_ended() noexcept {
  constexpr auto kEvery = std::chrono::seconds(1);
  const auto now = Clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kEvery;
  try {
    bool ended = false;
    state_.control.with_edge(
        [&] { ended = state_.hooks.program_ended && state_.hooks.program_ended(); });
    if (!ended) return false;
    state_.accepting.store(false, std::memory_order_relaxed);
    finish(EndReason::kExit);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return true;
}

void WriterLoop::step(const WriterControl::Request& request) {
  if (request.close) return finish(request.reason);
  drain();
  const uint64_t now = state_.real_now();
  if (!request.flush && now < next_flush_ns_) return;
  next_flush_ns_ = now + uint64_t{state_.config.flush_period_ms} * 1'000'000;
  flush(request.flush);
}

// Times are taken before launches, so that a time is there before its launch only where the GPU was
// quicker than the launch callback's end.
void WriterLoop::drain() {
  state_.times.take(times_);
  state_.copies.take(copy_times_);
  state_.threads.list(threads_);
  host_clock_.set();
  output_.clock_error(host_clock_.error_ns());
  for (ThreadState*& thread : threads_) {
    const bool last = thread->retired.load(std::memory_order_acquire);
    thread->ring.drain([&](const RingRecord& record) {
      if (!failed_) take(*thread, record);
    });
    if (!last) continue;
    const bool launched = thread->ring.pushed() != 0;
    const ThreadId id = thread->id;
    const uint32_t tid = thread->os_tid;
    const std::string name = state_.threads.reap(thread);
    thread = nullptr;
    if (!failed_) definitions_.thread_ended(id, tid, name, launched);
  }
  std::erase(threads_, nullptr);
  if (!failed_) {
    merger_.times(times_);
    copies_.add(copy_times_);
  }
  tell_scheduler();
}

void WriterLoop::tell_scheduler() {
  const LedgerReport::TimedCalls& timed = ledger_.timed_calls();
  state_.scheduler.progress(counts_.changed(), timed.calls, timed.ns, state_.program_now());
}

void WriterLoop::take(ThreadState& thread, const RingRecord& record) {
  if (record.is_step_mark()) {
    thread.taken_step = record.subject;
    return;
  }
  if (record.is_pause_mark()) {
    thread.taken_pause = record.pause();
    return;
  }
  const LaunchMerger::Origin origin{thread.id, record.stream, DeviceId{record.device_slot}};
  LaunchRecord launch = record.launch();
  launch.step = thread.taken_step;
  launch.called = host_clock_.ns(launch.called);
  Pause pause = std::exchange(thread.taken_pause, {});
  if (pause.end != 0) pause = {pause.path, host_clock_.ns(pause.begin), host_clock_.ns(pause.end)};
  if ((launch.flags & LaunchRecord::kGraph) != 0) {
    take_graph(origin, launch, pause, record.launches);
  } else {
    merger_.launch(origin, launch, pause);
    counts_.taken(origin.device, launch.signature, launch.correlation, launch.flags);
  }
  count_unseen(launch.flags);
  if (merger_.full()) {
    definitions_.write(writer_, threads_);
    release(false);
  }
}

// The launching thread counted so many launches; what the table says otherwise must not unbalance
// the ledger.
void WriterLoop::take_graph(const LaunchMerger::Origin& origin, const LaunchRecord& record,
                            const Pause& pause, uint32_t counted) {
  const auto nodes = state_.graphs.nodes(record.graph);
  const auto known = nodes.first(std::min<size_t>(nodes.size(), counted));
  merger_.graph_launch(origin, record, known, pause);
  state_.losses.lost("graph_unknown", origin.device.value, counted - known.size());
  for (const GraphNode& node : nodes) count_unseen(node.flags);
  if (!merger_.conditional(origin, record, nodes.subspan(known.size())))
    state_.losses.unseen("conditional_body", 1);
}

void WriterLoop::count_unseen(uint32_t flags) {
  if ((flags & LaunchRecord::kLaunchesKernels) != 0)
    state_.losses.unseen("kernel_launches_kernels", 1);
  if ((flags & LaunchRecord::kLaunchesGraphs) != 0)
    state_.losses.unseen("kernel_launches_graphs", 1);
}

void WriterLoop::release(bool everything) {
  merger_.release(
      kMaxAge, everything,
      [this](const LaunchMerger::Origin& origin, const TimedLaunch& launch) {
        const size_t slot = device_slot(origin.device);
        output_.add(slot, origin.thread, origin.stream, launch);
        if (launch.found) state_.losses.found(slot, 1);
        counts_.recorded(origin.device, launch);
      },
      [this](const TallyRow& row) { output_.add(row); });
}

void WriterLoop::flush(bool everything) {
  state_.control.with_edge([&] {
    if (state_.hooks.flush_times) state_.hooks.flush_times();
  });
  auto samples = state_.samples.take();  // before the launches that they are of
  const std::vector<Step> steps = state_.steps.take();
  std::vector<RangeNumber> numbers = state_.range_numbers.take();
  drain();
  if (failed_) return;
  definitions_.write(writer_, threads_);
  release(everything);
  output_.write(everything);
  steps_.write(steps, everything);
  steps_.write(std::move(numbers), everything);
  copies_.write(everything);
  write_samples(samples);
  write_energy(everything);
  ledger_.report_losses(merger_);
  ledger_.write_diagnostics(writer_, false);
  tell_scheduler();  // of what was released just now, so that the ledger's coverage has it
  ledger_.write({writer_, output_, merger_, copies_.lost(), closing_}, everything);
  if (!writer_.flush()) return fail_to_write();
  written_ns_ = state_.now();
  state_.trace_bytes.store(writer_.bytes(), std::memory_order_relaxed);
}

// The launch that closed a window may come out of its ring after the window's samples: then it is
// the next of its signature.
void WriterLoop::write_samples(std::vector<SampleBatch>& samples) {
  for (SampleBatch& batch : samples) {
    if (batch.correlations.size() == batch.signatures.size())
      for (size_t i = 0; i < batch.signatures.size(); ++i)
        batch.ordinals.push_back(
            counts_.ordinal(batch.device, batch.signatures[i], batch.correlations[i]));
    writer_.samples(batch);
  }
}

// Once a second, and not while nothing else comes: an idle program adds nothing.
void WriterLoop::write_energy(bool everything) {
  constexpr auto kEvery = std::chrono::seconds(1);
  const auto now = Clock::now();
  if (!everything && (now < next_energy_ || writer_.bytes() == bytes_at_energy_)) return;
  next_energy_ = now + kEvery;
  std::vector<DeviceEnergy> devices;
  state_.control.with_edge([&] {
    if (state_.hooks.energy) devices = state_.hooks.energy();
  });
  if (devices.empty()) return;
  if (state_.config.level == Level::kTally)
    writer_.energy(energy_, devices);
  else
    writer_.energy(devices);
  bytes_at_energy_ = writer_.bytes();
}

void WriterLoop::finish(EndReason reason) {
  closing_ = true;
  flush(true);
  if (failed_) return;
  ledger_.write_diagnostics(writer_, true);
  writer_.end(reason, state_.now());
  if (!writer_.flush() || !writer_.close()) return fail_to_write();
  state_.trace_bytes.store(writer_.bytes(), std::memory_order_relaxed);
  if (reason == EndReason::kFailure) return;
  state_.control.with_edge([&] {
    if (state_.hooks.closed)
      state_.hooks.closed({writer_.sink().bytes_written(), ledger_.written()});
  });
}

void WriterLoop::fail_to_write() {
  if (failed_) return;
  // Without the trace's name, which it may not keep.
  Diagnostic why;
  why.severity = Severity::kError;
  why.code = "trace.write";
  why.message = "writing the trace failed: " + writer_.sink().error();
  why.time_ns = state_.now();
  writer_.last_words(why, written_ns_);
  fail("writing the trace to " + writer_.sink().target() + " failed: " + writer_.sink().error());
  state_.control.with_edge([&] {
    if (state_.hooks.cut) state_.hooks.cut();
  });
}

void WriterLoop::fail(const std::string& why) noexcept {
  if (std::exchange(failed_, true)) return;
  try {
    output_.clear();
    merger_.clear();
    state_.control.with_edge([&] {
      if (state_.hooks.log_error)
        state_.hooks.log_error(why + "; recording stops here, the program goes on");
    });
  } catch (...) {  // no memory, not even to say so
  }
}

}  // namespace flopinj
