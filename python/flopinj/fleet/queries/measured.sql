-- How much of each job's figures is measured, the least first.
SELECT job, coverage, counted_gpu_time_share, unmeasured_launches, measuring_ranks, processes,
       ranks_missing AS missing, partial, flop_mark, hfu_mark
FROM jobs
ORDER BY coverage NULLS FIRST, ranks_missing DESC NULLS LAST, job
LIMIT {top}
