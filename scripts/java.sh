# Sourced by make: sets JAVA_HOME to a Java that can run Spark, installs one with apt when it may,
# and otherwise says in one line what to do. POSIX sh.
java_major() {
  "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}
find_java() {
  for home in "${JAVA_HOME:-}" /usr/lib/jvm/*17* /usr/lib/jvm/*21* /usr/lib/jvm/* /opt/java/* \
      /Library/Java/JavaVirtualMachines/*/Contents/Home; do
    if [ -n "$home" ] && [ -x "$home/bin/java" ]; then
      major=$(java_major "$home/bin/java")
      if [ "${major:-0}" -ge 17 ]; then
        JAVA_HOME=$home
        export JAVA_HOME
        return 0
      fi
    fi
  done
  if command -v java >/dev/null 2>&1; then
    major=$(java_major java)
    [ "${major:-0}" -ge 17 ] && return 0
  fi
  return 1
}
if ! find_java; then
  if command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
    SUDO=
    [ "$(id -u)" = 0 ] || SUDO="sudo -n"
    echo "No Java 17 or newer found: installing openjdk-17-jre-headless with apt …" >&2
    { $SUDO apt-get update -qq && $SUDO apt-get install -qq -y openjdk-17-jre-headless; } >/dev/null 2>&1
  fi
  find_java || {
    echo "Spark needs Java 17 or newer: install one (Debian/Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME." >&2
    exit 1
  }
fi
