-- Keep the first outcome of each entry, unless it was to be forgotten.
-- KEYS: meta, outcomes      ARGV: version and sealed outcome in turn
local state = redis.call('HMGET', KEYS[1], 'forgotten', 'closed')
if state[2] then return 'closed' end
local forgotten = tonumber(state[1] or 0)
for i = 1, #ARGV, 2 do
  if tonumber(ARGV[i]) > forgotten then redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
return 'kept'
