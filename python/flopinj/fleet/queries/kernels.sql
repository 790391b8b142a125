-- Kernels of all jobs, by GPU time.
WITH total AS (SELECT sum(gpu_time_ns) AS ns FROM kernels)
SELECT kernel,
       chip,
       count(DISTINCT job) AS jobs,
       sum(launches) AS launches,
       sum(flop) AS flop,
       CASE WHEN sum(unmeasured_launches) > 0 THEN '>=' END AS flop_mark,
       sum(gpu_time_ns) AS gpu_time_ns,
       CAST(sum(gpu_time_ns) AS DOUBLE) / CAST(min(total.ns) AS DOUBLE) AS gpu_time_share
FROM kernels CROSS JOIN total
GROUP BY kernel, chip
ORDER BY gpu_time_ns DESC NULLS LAST, kernel, chip
LIMIT {top}
