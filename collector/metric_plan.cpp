#include <collector/metric_plan.h>

namespace flopinj {
namespace {
MetricGroupPlan sass_group() {
  return {"sass",
          {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"},
          true,
          true};
}
}  // namespace

std::vector<MetricGroupPlan> metric_plan_for(std::string_view) { return {sass_group()}; }

}  // namespace flopinj
