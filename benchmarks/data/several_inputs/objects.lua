-- objects with methods, closures, varargs and errors
local Shape = {}
Shape.__index = Shape
Shape.__add = function(a, b) return Shape.new(a.w + b.w, a.h + b.h) end
function Shape.new(w, h) return setmetatable({w = w, h = h}, Shape) end
function Shape:area() return self.w * self.h end
local function each(n, f, ...) local s = 0 for i = 1, n do s = s + f(i, ...) end return s end
local sum = Shape.new(0, 0)
for i = 1, 12000 do sum = sum + Shape.new(i % 17, i % 5) end
local total = each(9000, function(i, x, y) return i * x // (y + i % 3 + 1) end, 3, 4)
local failed = 0
for i = 1, 900 do if not pcall(function() if i % 3 == 0 then error("no") end end) then failed = failed + 1 end end
local list = {}
for i = 1, 4000 do table.insert(list, (i * 7919) % 4001) end
table.sort(list, function(a, b) return a > b end)
print(sum:area(), total, failed, list[1], #list)
