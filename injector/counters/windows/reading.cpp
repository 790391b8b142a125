// Images of the counters of closed windows (unread_windows.h): read into samples, on the planner's
// thread where there is room to wait for it.
#include <injector/counters/windows/windows.h>
#include <injector/process/process.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace flopinj {

void Windows::hand_over(std::unique_ptr<OpenWindow> window, std::vector<uint8_t> image) {
  UnreadWindow unread{std::move(window), std::move(image)};
  if (unread_.push(unread)) return planner_.visit_now();
  read(unread);
}

// True: another thread is reading, and may have left some.
bool Windows::read_closed() {
  if (!reading_.try_lock_for(patience_.for_reading)) return true;
  const MutexLock lock(reading_, std::adopt_lock);
  while (std::optional<UnreadWindow> unread = unread_.pop()) read(*unread);
  return false;
}

void Windows::read(UnreadWindow& unread) {
  OpenWindow& window = *unread.window;
  MeasurementWindow& measured = window.measured;
  std::vector<double> values;
  Problem problem;
  bool evaluated = false;
  try {
    evaluated = evaluate_image(edge_.cupti, window.reads(), unread.image, measured.rows.size(),
                               values, problem);
  } catch (const std::exception&) {
    problem = {"counters.memory", "no memory for a window's counters: it was discarded", false,
               true};
  }
  unread_.keep(std::move(unread.image));
  if (!evaluated) return refused(measured.device, *window.plan, measured.group, problem);
  backoff_.accepted(measured.device, measured.group);
  leave_out_unpatched(window, values);
  window.settled = true;
  scheduler_.window_succeeded(measured, values);
  const uint32_t number = windows_.fetch_add(1, std::memory_order_relaxed) + 1;
  size_t column = 0;
  for (const uint32_t g : window.groups()) {
    deliver(window, number, g, values, column);
    column += window.plan->groups[g]->metrics.size();
  }
}

// CUPTI patches the kernels of modules that are loaded when a window opens. Its documents do not
// say whether it patches kernels of modules that are loaded later. An unpatched kernel counts 0, so
// a 0 is not taken for such a kernel's count.
void Windows::leave_out_unpatched(OpenWindow& window, std::span<const double> values) {
  std::vector<WindowRow>& rows = window.measured.rows;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  size_t column = 0;
  for (const uint32_t g : window.groups()) {
    const MetricGroup& group = *window.plan->groups[g];
    for (size_t i = 0; i < rows.size() && group.plan.instrumented; ++i) {
      const auto counts = values.subspan(i * width + column, group.metrics.size());
      if (!rows[i].late || !std::ranges::all_of(counts, [](double n) { return n == 0; })) continue;
      rows[i].unread = true;
      edge_.collector->diagnostic(
          Severity::kInfo, "counters.unpatched",
          "a module was loaded in a window, and a launch behind it counted no instruction: CUPTI "
          "may not have patched its kernel, so the count is not used");
    }
    column += group.metrics.size();
  }
}

// The rows that were chosen, as samples of a group whose metrics begin at `column`.
void Windows::deliver(const OpenWindow& window, uint32_t number, uint32_t group,
                      std::span<const double> values, size_t column) {
  const auto& rows = window.measured.rows;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  const MetricGroup& of = *window.plan->groups[group];
  SampleBatch batch;
  batch.device = window.measured.device;
  batch.group = window.plan->ids[group];
  batch.window = number;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].chosen || (rows[i].unread && of.plan.instrumented)) continue;
    batch.signatures.push_back(rows[i].signature->id);
    batch.paths.push_back(rows[i].path);
    batch.correlations.push_back(rows[i].correlation);
    const auto row = values.subspan(i * width + column, of.metrics.size());
    batch.values.insert(batch.values.end(), row.begin(), row.end());
  }
  if (!batch.signatures.empty()) edge_.collector->samples(std::move(batch));
}

}  // namespace flopinj
