-- Remove a log and all that belongs to it, and leave it closed for thirty days, for processes that have not heard.
-- KEYS: meta, log, ids, marks, outcomes, snapshots, records, expiry      ARGV: log, channel, prefix of data keys
local found = redis.call('HGETALL', KEYS[6])
for i = 1, #found, 2 do redis.call('UNLINK', ARGV[3] .. found[i] .. ':' .. found[i + 1]) end
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
redis.call('HSET', KEYS[1], 'closed', 1)
redis.call('EXPIRE', KEYS[1], 2592000)
redis.call('PUBLISH', ARGV[2], 'log ' .. ARGV[1] .. ' 0')
return 1
