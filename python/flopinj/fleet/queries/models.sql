-- Models and clusters: what they took, and how well they used it.
SELECT jobs.model, jobs.cluster, count(*) AS jobs, sum(gpu_hours) AS gpu_hours,
       sum(gpu_hours) * {price} AS cost, sum(flop) AS flop, sum(kwh) AS kwh,
       sum(kwh) * {electricity} AS electricity_cost,
       CAST(sum(energy_gpus) AS DOUBLE) / sum(gpus) AS energy_known_share,
       CAST(sum(CASE WHEN flop_per_joule IS NOT NULL THEN flop END) AS DOUBLE) /
         sum(CASE WHEN flop_per_joule IS NOT NULL THEN energy_joules END) AS flop_per_joule,
       sum(gpu_hours * hfu) / sum(CASE WHEN hfu IS NOT NULL THEN gpu_hours END) AS hfu,
       sum(gpu_hours * mfu) / sum(CASE WHEN mfu IS NOT NULL THEN gpu_hours END) AS mfu
FROM jobs
GROUP BY jobs.model, jobs.cluster
ORDER BY gpu_hours DESC NULLS LAST, jobs.model NULLS LAST, jobs.cluster NULLS LAST
LIMIT {top}
