-- A job's kernels, by phase and chip.
SELECT kernel, chip, phase,
       TRY_CAST(sum(launches) AS BIGINT) AS launches,
       TRY_CAST(sum(unmeasured_launches) AS BIGINT) AS unmeasured_launches,
       TRY_CAST(sum(TRY_CAST(flop AS HUGEINT)) AS DECIMAL(38, 0)) AS flop,
       TRY_CAST(sum(gpu_time_ns) AS BIGINT) AS gpu_time_ns,
       count(DISTINCT session) AS processes
FROM rows
GROUP BY kernel, chip, phase
ORDER BY kernel, chip, phase
