/* Built-in module of the identity gate: local, static and recursive calls, a switch, loops and
   indirect calls, so that the inliner has every kind of decision to make. No headers. */
static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
static int weight(int k) {
  switch (k & 7) {
  case 0: return 3;
  case 1: return 5;
  case 2: return clamp(k, 1, 9);
  case 5: return -k;
  default: return k / 3;
  }
}
static unsigned gcd(unsigned a, unsigned b) { return b ? gcd(b, a % b) : a; }
static int twice(int (*f)(int), int x) { return f(f(x)); }
int table[64];
static void fill(int n, int seed) {
  for (int i = 0; i < n; ++i)
    table[i & 63] += weight(seed + i) * clamp(i, 2, 40);
}
int sum(const int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i)
    s += clamp(p[i], -100, 100);
  return s;
}
int checksum(int n) {
  fill(n, 7);
  fill(n / 2, 11);
  return sum(table, 64) + twice(weight, n) + (int)gcd((unsigned)n, 84u);
}
int main(int argc, char **argv) {
  (void)argv;
  return checksum(argc * 5) == checksum(argc) ? clamp(argc, 0, 1) : weight(argc) & 1;
}
