-- text: words are cut out, changed, counted and put together
local parts, counts = {}, {}
for i = 1, 2500 do
  local line = string.format("%05d;%s;%x", i * 7919 % 100000, ("ab"):rep(i % 9), i)
  for field in line:gmatch("[^;]+") do
    counts[#field] = (counts[#field] or 0) + 1
    parts[#parts + 1] = field:upper():sub(1, 6):reverse()
  end
end
table.sort(parts)
local text = table.concat(parts, ",")
print(#text, text:gsub("A", "b"):find("ZZ", 1, true), #counts)
