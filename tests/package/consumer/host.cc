// A program that knows Detent only by what its plug-in has of it.
bool fires_in_a_plugin();

int main() { return fires_in_a_plugin() ? 0 : 1; }
