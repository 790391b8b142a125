-- Ranks whose kernels take longer than the same kernels do on the job's other ranks
-- (flopreduce's table rank_slowdown).
SELECT job, rank, hostname, device, slowdown, timed_ns - usual_ns AS lost_gpu_time_ns, session
FROM ranks
WHERE slowdown > {over}
ORDER BY slowdown DESC, job, rank, device
LIMIT {top}
