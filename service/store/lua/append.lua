-- Append drafts to a log, each once, and take the records they name: all of them, or none.
-- KEYS: meta, log, ids, marks, snapshots, records, expiry
-- ARGV: log, channel, time, prefix of data keys, then for each draft: body, digest, record or "", marks, base, number of ids, ids...
local meta, log, ids, marks, snapshots, records, expiry = unpack(KEYS)
local now = tonumber(ARGV[3])
local held = redis.call('HMGET', meta, 'version', 'floor', 'closed')
if held[3] then return {'closed'} end
local version, floor = tonumber(held[1] or 0), tonumber(held[2] or 1)
local last = version
local drafts, placed, met = {}, {}, {}

local at, index = 5, 0
while at <= #ARGV do
  local count = tonumber(ARGV[at + 5])
  local draft = {body = at, digest = ARGV[at + 1], take = ARGV[at + 2], marks = tonumber(ARGV[at + 3]),
                 base = tonumber(ARGV[at + 4]), first = at + 6, final = at + 5 + count}
  local known
  for i = draft.first, draft.final do
    local found = met[ARGV[i]] or redis.call('HGET', ids, ARGV[i])
    if found then
      local where, digest = string.match(found, '^(%d+) (.*)$')
      if digest ~= draft.digest or (known and known ~= where) then return {'clash', index} end
      known = where
    end
  end
  if known then
    placed[#placed + 1] = tonumber(known)
    placed[#placed + 1] = 0
  else
    if draft.take ~= '' then
      local record = redis.call('HGET', records, draft.take)
      if not record or struct.unpack('<d', record) <= now then return {'missing', index} end
      draft.taken = string.sub(record, 9)
    end
    if draft.marks > 0 then
      local reaches = draft.base == 0 or redis.call('HEXISTS', snapshots, draft.base) == 1
      if floor > draft.base + 1 or not reaches then return {'trimmed'} end
    end
    last = last + 1
    draft.version = last
    for i = draft.first, draft.final do met[ARGV[i]] = last .. ' ' .. draft.digest end
    drafts[#drafts + 1] = draft
    placed[#placed + 1] = last
    placed[#placed + 1] = 1
  end
  at = draft.final + 1
  index = index + 1
end

for _, draft in ipairs(drafts) do
  local fields = {'b', ARGV[draft.body], 'a', ARGV[3]}
  if draft.taken then
    fields[5], fields[6] = 't', draft.taken
    redis.call('HDEL', records, draft.take)
    redis.call('ZREM', expiry, draft.take)
  end
  redis.call('XADD', log, draft.version .. '-0', unpack(fields))
  for i = draft.first, draft.final do redis.call('HSET', ids, ARGV[i], met[ARGV[i]]) end
  if draft.marks > 0 then
    redis.call('HSET', marks, draft.marks, draft.version)
    redis.call('HSET', meta, 'marked', draft.version)
    for _, held in ipairs(redis.call('HKEYS', snapshots)) do
      if tonumber(held) >= draft.marks then
        redis.call('DEL', ARGV[4] .. held .. ':' .. redis.call('HGET', snapshots, held))
        redis.call('HDEL', snapshots, held)
      end
    end
  end
end
if last > version then
  redis.call('HSET', meta, 'version', last)
  redis.call('PUBLISH', ARGV[2], 'log ' .. ARGV[1] .. ' ' .. last)
end
return {'placed', placed}
