-- Remove a log and all that belongs to it, and leave it closed: for thirty days, or until told (see `Store.discard`).
-- Begins with a command that a full server takes; what follows it in a script is taken as well.
-- KEYS: all of the log      ARGV: log, channel, prefix of part keys, seconds that it stays closed or 0
local meta, snapshots = KEYS[1], KEYS[7]
local rows = redis.call('HVALS', snapshots)
redis.call('UNLINK', meta)
for _, row in ipairs(rows) do
  local upload, parts = string.match(row, '(%S+) (%d+)$')
  for i = 0, tonumber(parts) - 1 do redis.call('UNLINK', ARGV[3] .. upload .. ':' .. i) end
end
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
redis.call('HSET', meta, 'closed', 1)
if tonumber(ARGV[4]) > 0 then redis.call('EXPIRE', meta, ARGV[4]) end
redis.call('PUBLISH', ARGV[2], 'log ' .. ARGV[1] .. ' 0')
return 1
