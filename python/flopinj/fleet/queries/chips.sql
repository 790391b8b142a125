-- Chips and number formats: how well jobs use them.
SELECT chip, jobs.precision, count(*) AS jobs, sum(gpus) AS gpus, sum(gpu_hours) AS gpu_hours,
       min(hfu) AS least_hfu, median(hfu) AS median_hfu, max(hfu) AS largest_hfu
FROM jobs
GROUP BY chip, jobs.precision
ORDER BY gpu_hours DESC NULLS LAST, chip, jobs.precision
LIMIT {top}
