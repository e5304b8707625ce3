/* More values than registers, in loops of different depth: where the register allocator has to choose. */

typedef unsigned long word;

word use(word);

word churn(const word *p, word n) {
  word a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];
  word i = p[8], j = p[9], k = p[10], l = p[11], m = p[12], o = p[13], q = p[14], r = p[15];
  for (word x = 0; x < n; ++x) {
    a += b ^ (c << 3); b ^= d + (e >> 5); c -= f * g; d ^= h | i; e += j & k; f ^= l - m;
    g += o ^ q; h -= r + a; i ^= b * c; j += d >> 7; k ^= e + f; l -= g ^ h;
    if (x & 1) { m += i; o ^= j; } else { q -= k; r += l; }
    for (word y = a & 7; y; --y) { b += p[y] * c; d ^= p[y + 1] + e; q += b >> 2; }
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ o ^ q ^ r;
}

word calls(const word *p, word n) {
  word a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];
  for (word x = 0; x < n; ++x) {
    a += use(b + x); b ^= c; c -= d; d += e;
    if (a & 3) e ^= use(f);
    f += g; g ^= h * x; h -= a;
  }
  return use(a ^ b) + c + d * e - f + g * h;
}
