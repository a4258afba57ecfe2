-- Records of a log that wait for an answer and that nobody has a lease of, by rank; clears those that are gone.
-- KEYS: ranks, records, leases      ARGV: rank to begin behind, time now, limit
-- Replies {key, rank, record, ...}
local reply, now, limit, from = {}, tonumber(ARGV[2]), tonumber(ARGV[3]), 0
while #reply < 3 * limit do
  local rows = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', from, limit)
  if #rows == 0 then break end
  for i = 1, #rows, 2 do
    local record = redis.call('HGET', KEYS[2], rows[i])
    local expires, taken
    if record then expires, taken = struct.unpack('<dI4', record) end
    if not record or expires <= now or taken > 0 then
      redis.call('ZREM', KEYS[1], rows[i])
    else
      from = from + 1
      local lease = redis.call('ZSCORE', KEYS[3], rows[i])
      if (not lease or tonumber(lease) <= now) and #reply < 3 * limit then
        reply[#reply + 1] = rows[i]
        reply[#reply + 1] = rows[i + 1]
        reply[#reply + 1] = record
      end
    end
  end
end
return reply
