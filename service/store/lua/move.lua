-- Move what lies under old names to new ones, and leave tombs: strings, which refuse the commands of older releases.
-- KEYS: the old prefix      ARGV: old prefix, new prefix, tomb, its seconds, name, number of parts, parts..., tombs...
-- Replies the time at which the first record falls due, or ''.
local old, new, count = ARGV[1], ARGV[2], tonumber(ARGV[6])
local function kind(key) return redis.call('TYPE', key).ok end
if kind(old .. 'snapshots') == 'hash' then
  for _, row in ipairs(redis.call('HVALS', old .. 'snapshots')) do
    local upload, parts = string.match(row, '(%S+) (%d+)$')
    for i = 0, tonumber(parts) - 1 do
      local part = 'part:' .. upload .. ':' .. i
      if kind(old .. part) ~= 'none' then redis.call('RENAME', old .. part, new .. part) end
    end
  end
end
for i = 7, 6 + count do
  local found = kind(old .. ARGV[i])
  if found ~= 'none' and not (found == 'string' and redis.call('GET', old .. ARGV[i]) == ARGV[3]) then
    redis.call('RENAME', old .. ARGV[i], new .. ARGV[i])
  end
end
for i = 7 + count, #ARGV do redis.call('SET', old .. ARGV[i], ARGV[3], 'EX', ARGV[4]) end
local earliest = redis.call('ZRANGE', new .. 'due', 0, 0, 'WITHSCORES')
return earliest[2] or ''
