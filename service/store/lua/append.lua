-- Append drafts to a log: all of them, each once, taking the records they name, or none.
-- KEYS: meta, log, ids, marks, snapshots, records, expiry
-- ARGV: log, channel, time, prefix of data keys, then for each draft:
--       body, digest, record or "", marks, base, number of ids, ids...
-- Replies "placed VERSION FRESH ...", "clash INDEX", "missing INDEX", "trimmed" or "closed".
local meta, log, ids, marks, snapshots, records, expiry = unpack(KEYS)
local now = tonumber(ARGV[3])
local held = redis.call('HMGET', meta, 'version', 'floor', 'closed')
local version, floor, closed = tonumber(held[1] or 0), tonumber(held[2] or 1), held[3]
if closed then return 'closed' end

-- First examine all: the drafts that are new, and where each stands.
local last, at, index = version, 5, 0
local fresh, places, met = {}, {}, {}
while at <= #ARGV do
  local final = at + 5 + tonumber(ARGV[at + 5])
  local draft = {at = at, final = final, digest = ARGV[at + 1], take = ARGV[at + 2], marks = tonumber(ARGV[at + 3])}
  local known
  for i = at + 6, final do
    local found = met[ARGV[i]] or redis.call('HGET', ids, ARGV[i])
    if found then
      local where, digest = string.match(found, '^(%d+) (.*)$')
      if digest ~= draft.digest or (known and known ~= where) then return 'clash ' .. index end
      known = where
    end
  end
  if known then
    places[#places + 1] = known .. ' 0'
  else
    if draft.take ~= '' then
      local record = redis.call('HGET', records, draft.take)
      if not record or struct.unpack('<d', record) <= now then return 'missing ' .. index end
      draft.taken = string.sub(record, 9)
    end
    if draft.marks > 0 then
      local base = tonumber(ARGV[at + 4])
      if floor > base + 1 or (base > 0 and redis.call('HEXISTS', snapshots, base) == 0) then return 'trimmed' end
    end
    last = last + 1
    draft.version = last
    for i = at + 6, final do met[ARGV[i]] = last .. ' ' .. draft.digest end
    fresh[#fresh + 1] = draft
    places[#places + 1] = last .. ' 1'
  end
  at, index = final + 1, index + 1
end

-- Then write: from here on nothing is refused.
for _, draft in ipairs(fresh) do
  if draft.taken then
    redis.call('XADD', log, draft.version .. '-0', 'b', ARGV[draft.at], 'a', ARGV[3], 't', draft.taken)
    redis.call('HDEL', records, draft.take)
    redis.call('ZREM', expiry, draft.take)
  else
    redis.call('XADD', log, draft.version .. '-0', 'b', ARGV[draft.at], 'a', ARGV[3])
  end
  for i = draft.at + 6, draft.final do
    redis.call('HSET', ids, ARGV[i], draft.version .. ' ' .. draft.digest)
  end
  if draft.marks > 0 then
    redis.call('HSET', marks, draft.marks, draft.version)
    redis.call('HSET', meta, 'marked', draft.version)
    for _, old in ipairs(redis.call('HKEYS', snapshots)) do
      if tonumber(old) >= draft.marks then
        redis.call('DEL', ARGV[4] .. old .. ':' .. redis.call('HGET', snapshots, old))
        redis.call('HDEL', snapshots, old)
      end
    end
  end
end
if last > version then
  redis.call('HSET', meta, 'version', last)
  redis.call('PUBLISH', ARGV[2], 'log ' .. ARGV[1] .. ' ' .. last)
end
return 'placed ' .. table.concat(places, ' ')
