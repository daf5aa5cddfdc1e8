// A program that uses Detent only through its plug-in.
bool fires_in_a_plugin();

int main() { return fires_in_a_plugin() ? 0 : 1; }
