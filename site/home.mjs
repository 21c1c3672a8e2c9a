/** The front matter of the start page. */
export const home = {
  layout: "home",
  hero: {
    name: "Holdfast",
    text: "Distributed locks for TypeScript",
    tagline:
      "On the Redis, PostgreSQL, MySQL, etcd or ZooKeeper that you already run. No runtime dependency.",
    actions: [
      { theme: "brand", text: "Install", link: "/install" },
      { theme: "alt", text: "Guide", link: "/guide" },
      { theme: "alt", text: "Choose a driver", link: "/choosing" },
    ],
  },
  features: [
    {
      title: "Safe",
      details:
        "Every grant has a fencing token. A watchdog renews the lease, and a signal reports a loss before the validity ends.",
      link: "/guarantees",
    },
    {
      title: "Fair",
      details: "Waiters are served in order of arrival. A release wakes exactly the next waiter.",
      link: "/guide#order",
    },
    {
      title: "Complete",
      details: "Mutex, reentrant, read-write, semaphore, several keys, election and latch.",
      link: "/kinds",
    },
    {
      title: "For every language",
      details: "A lock service over HTTP, and a command that runs any program under a lock.",
      link: "/service",
    },
    {
      title: "Operable",
      details: "Inspect, list, watch and break locks. The command doctor finds risks on your servers.",
      link: "/cli#doctor",
    },
    {
      title: "Verified",
      details: "Models, simulation, chaos runs and mutants, on real servers.",
      link: "/maintainers/verification",
    },
  ],
};
