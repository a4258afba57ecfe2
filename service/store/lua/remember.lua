-- Keep records until they expire, the first of each key, all or none; each call also clears some that have expired.
-- KEYS: records, expiry, due, log, meta, ids, ranks, leases, marks
-- ARGV: time, their life in milliseconds, expiry, 1 to write in any case, then for each: key, digest, due time or "", rank or "",
--       mark or "", record
-- Replies {"kept", key, first record or the one that an entry took, ...}, {"clash", index} or {"erased", key}.
local records, expiry, due, log, meta, ids, ranks, leases, marks = unpack(KEYS)
local salt = redis.call('HGET', meta, 'salt')
local now = tonumber(ARGV[1])
local first, fresh = {'kept'}, {}
for i = 5, #ARGV, 6 do
  local row = redis.call('HGET', records, ARGV[i])
  local expires, taken, size
  if row then expires, taken, size = struct.unpack('<dI4B', row) end
  if row and expires > now then
    if string.sub(row, 14, 13 + size) ~= ARGV[i + 1] then return {'clash', (i - 5) / 6} end
    if taken > 0 then
      local entry = redis.call('XRANGE', log, taken .. '-0', taken .. '-0')[1]
      row = string.sub(row, 1, 45 + size)
      for j = 1, entry and #entry[2] or 0, 2 do
        if entry[2][j] == 't' then row = row .. entry[2][j + 1] end
      end
    end
    first[#first + 1] = ARGV[i]
    first[#first + 1] = row
  else
    if salt and ARGV[i + 1] ~= '' and redis.call('HEXISTS', ids, 'e:' .. redis.sha1hex(salt .. ' ' .. ARGV[i])) == 1 then
      return {'erased', ARGV[i]}
    end
    fresh[#fresh + 1] = i
  end
end
for _, i in ipairs(fresh) do
  redis.call('HSET', records, ARGV[i], ARGV[i + 5])
  redis.call('ZADD', expiry, ARGV[3], ARGV[i])
  for j, name in ipairs({due, ranks, marks}) do
    if ARGV[i + 1 + j] ~= '' then redis.call('ZADD', name, ARGV[i + 1 + j], ARGV[i]) end
  end
end
local old = redis.call('ZRANGEBYSCORE', expiry, '-inf', ARGV[1], 'LIMIT', 0, #ARGV)
for _, key in ipairs(old) do
  redis.call('HDEL', records, key)
  for _, name in ipairs({expiry, due, ranks, leases, marks}) do redis.call('ZREM', name, key) end
end
local life = redis.call('PTTL', records)
if #fresh > 0 and life < tonumber(ARGV[2]) then
  for _, name in ipairs({records, expiry, due, ranks, leases, marks}) do redis.call('PEXPIRE', name, ARGV[2]) end
elseif ARGV[4] == '1' and life > 0 then
  redis.call('PEXPIRE', records, life) -- what replicas must confirm needs a write of this connection
end
return first
