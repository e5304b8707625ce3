// Built-in module of the identity gate: templates, virtual calls, destructors, exceptions, lambdas
// and copies that a linker would merge. No headers, so that it compiles everywhere.
template <typename T> struct Box {
  T *data;
  unsigned size, room;
  Box() : data(nullptr), size(0), room(0) {}
  ~Box() { delete[] data; }
  void grow() {
    unsigned wider = room ? room * 2 : 4;
    T *moved = new T[wider];
    for (unsigned i = 0; i < size; ++i)
      moved[i] = data[i];
    delete[] data;
    data = moved;
    room = wider;
  }
  void push(const T &value) {
    if (size == room)
      grow();
    data[size++] = value;
  }
  T &at(unsigned i) {
    if (i >= size)
      throw i;
    return data[i];
  }
  template <typename F> T fold(T start, F f) const {
    for (unsigned i = 0; i < size; ++i)
      start = f(start, data[i]);
    return start;
  }
};
struct Shape {
  virtual ~Shape() {}
  virtual long area() const = 0;
  long twice() const { return 2 * area(); }
};
struct Square final : Shape {
  long side;
  explicit Square(long s) : side(s) {}
  long area() const override { return side * side; }
};
struct Frame : Shape {
  Square outer, inner;
  Frame(long o, long i) : outer(o), inner(i) {}
  long area() const override { return outer.area() - inner.area(); }
};
static long measure(const Shape &shape) { return shape.twice() + 1; }
long total(int n) {
  Box<long> box;
  Box<short> small;
  for (int i = 0; i < n; ++i) {
    Frame frame(i + 3, i);
    box.push(measure(frame) + measure(Square(i)));
    small.push(short(i));
  }
  try {
    box.at(unsigned(n)) += 1;
  } catch (unsigned where) {
    box.push(long(where));
  }
  long sum = box.fold(0L, [](long a, long b) { return a + b; });
  return sum + small.fold(short(0), [](short a, short b) { return short(a > b ? a : b); });
}
int main(int argc, char **) { return total(argc + 4) > 0 ? 0 : 1; }
