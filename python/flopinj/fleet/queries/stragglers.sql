-- Ranks whose kernels take longer than the same kernels do on the job's other ranks. A launch is
-- expected to take the median over the ranks of the mean time of its signature in its range; only
-- times count that were measured while no counters were read. Collectives wait for others, so they
-- say nothing of their own rank.
WITH times AS (
    SELECT job, session, rank, hostname, device, range, stable_hash,
           sum(timed_launches) AS launches, sum(timed_ns) AS ns
    FROM rows
    WHERE timed_launches > 0 AND coalesce(phase, '') <> 'communication'
    GROUP BY job, session, rank, hostname, device, range, stable_hash
),
usual AS (
    SELECT job, range, stable_hash, median(ns / launches) AS ns
    FROM times
    GROUP BY job, range, stable_hash
),
ranks AS (
    SELECT times.job, times.session, times.rank, times.hostname, times.device,
           sum(times.ns) AS ns, sum(times.launches * usual.ns) AS usual_ns
    FROM times
    JOIN usual ON times.job = usual.job AND times.stable_hash = usual.stable_hash
        AND coalesce(times.range, '') = coalesce(usual.range, '')
    GROUP BY times.job, times.session, times.rank, times.hostname, times.device
)
SELECT job, rank, hostname, device, ns / usual_ns AS slowdown, ns - usual_ns AS lost_gpu_time_ns,
       session
FROM ranks
WHERE ns > {over} * usual_ns
ORDER BY slowdown DESC, job, rank, device
LIMIT {top}
