-- Traces that something is wrong with.
SELECT job, file, rank, problem
FROM inputs
WHERE problem IS NOT NULL
ORDER BY job, file
LIMIT {top}
