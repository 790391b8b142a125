-- Jobs, those that use their GPUs best first. Where there is no HFU, the time of kernels decides.
SELECT job, processes, ranks_missing AS missing, problems, gpus, gpu_hours,
       gpu_hours * {price} AS cost, flop, flop_mark, hfu, hfu_mark, mfu, mfu_mark,
       hfu_kernel_time, hfu_kernel_time_mark, coverage, step_time
FROM jobs
ORDER BY hfu DESC NULLS LAST, hfu_kernel_time DESC NULLS LAST, job
LIMIT {top}
