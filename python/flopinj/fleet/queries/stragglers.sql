-- Ranks whose kernels take longer than the same kernels do on the job's other ranks.
SELECT job, rank, hostname, device, slowdown, timed_ns - usual_ns AS lost_gpu_time_ns, session
FROM rank_slowdown
WHERE slowdown > {over}
ORDER BY slowdown DESC, job, rank, device
LIMIT {top}
