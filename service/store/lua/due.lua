-- The records of a log that are due, clearing those that are gone. Replies {time of the next one after them or "", key, time, ...}
-- KEYS: due, records      ARGV: due time, time now, limit
local reply, now = {''}, tonumber(ARGV[2])
local rows = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #rows, 2 do
  local record = redis.call('HGET', KEYS[2], rows[i])
  local expires, taken
  if record then expires, taken = struct.unpack('<dI4', record) end
  if record and expires > now and taken == 0 then
    reply[#reply + 1] = rows[i]
    reply[#reply + 1] = rows[i + 1]
  else
    redis.call('ZREM', KEYS[1], rows[i])
  end
end
local earliest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if earliest[2] then reply[1] = earliest[2] end
return reply
