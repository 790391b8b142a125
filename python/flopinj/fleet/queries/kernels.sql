-- Kernels of all jobs, by GPU time.
SELECT kernel,
       chip,
       count(DISTINCT job) AS jobs,
       sum(launches) AS launches,
       sum(flop) AS flop,
       CASE WHEN sum(unmeasured_launches) > 0 THEN '>=' END AS flop_mark,
       sum(gpu_time_ns) AS gpu_time_ns,
       sum(gpu_time_ns) / sum(sum(gpu_time_ns)) OVER () AS gpu_time_share
FROM rows
GROUP BY kernel, chip
ORDER BY gpu_time_ns DESC NULLS LAST, kernel, chip
LIMIT {top}
