package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Locale;

/**
 * The worker of the Java libraries, with the line protocol of verify/interop/README.md.
 *
 * <p>{@code java -cp … interop.Worker LIBRARY PORT}
 */
public final class Worker {
  public static void main(String[] args) throws Exception {
    LockLibrary library = open(args[0], Integer.parseInt(args[1]));
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String[] words = line.trim().split(" ");
      if (words[0].equals("quit")) {
        break;
      }
      System.out.println(reply(library, words));
    }
    library.close();
    System.exit(0);
  }

  private static LockLibrary open(String name, int port) {
    if (name.startsWith("redisson")) {
      return new RedissonLibrary(name, port);
    }
    return name.startsWith("shedlock") ? new ShedLockLibrary(name, port) : new SpringLibrary(name, port);
  }

  private static String reply(LockLibrary library, String[] words) {
    double sent = now();
    try {
      switch (words[0]) {
        case "acquire" -> {
          LockLibrary.Grant grant =
              library.acquire(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]));
          double at = now();
          if (grant == null) {
            return line("refused", sent, at);
          }
          return line("granted", sent, at) + " - " + (grant.fencingToken() == null ? "-" : grant.fencingToken());
        }
        case "release" -> {
          boolean wasHeld = library.release();
          return line("released", sent, now()) + " " + wasHeld;
        }
        case "extend" -> {
          boolean isExtended = library.extend(Long.parseLong(words[1]));
          return isExtended ? line("extended", sent, now()) + " -" : line("refused", sent, now());
        }
        default -> throw new IllegalArgumentException("unknown request: " + words[0]);
      }
    } catch (UnsupportedOperationException error) {
      return "unsupported";
    } catch (Throwable error) {
      return line("error", sent, now()) + " " + String.valueOf(error).replaceAll("\\s+", " ");
    }
  }

  /** Milliseconds of the monotonic clock that all processes of the machine share. */
  private static double now() {
    return System.nanoTime() / 1e6;
  }

  private static String line(String what, double sent, double at) {
    return String.format(Locale.ROOT, "%s %.3f %.3f", what, sent, at);
  }

  private Worker() {}
}
