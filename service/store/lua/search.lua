-- Keys of some records that contain a text. Replies {cursor to go on with, key, ...}.
-- KEYS: records      ARGV: cursor, text, how many to look at
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[3])
local reply = {page[1]}
for i = 1, #page[2], 2 do
  if string.find(page[2][i + 1], ARGV[2], 1, true) then reply[#reply + 1] = page[2][i] end
end
return reply
