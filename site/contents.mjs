// The order of the pages: the sidebar, and the list in llms.txt. Every page of docs/ is in it.

export const contents = [
  {
    text: "Start",
    items: [
      ["guide", "Guide"],
      ["install", "Install"],
      ["compatibility", "Compatibility"],
      ["choosing", "Choosing"],
      ["guarantees", "Guarantees"],
      ["kinds", "Kinds of locks"],
      ["troubleshooting", "Troubleshooting"],
    ],
  },
  {
    text: "Quick start",
    items: [
      ["quickstart/express", "Express"],
      ["quickstart/fastify", "Fastify"],
      ["quickstart/nextjs", "Next.js"],
      ["quickstart/nestjs", "NestJS"],
      ["quickstart/worker", "Worker"],
      ["quickstart/cron", "Cron and scripts"],
    ],
  },
  {
    text: "Drivers",
    items: [
      ["drivers/redis", "Redis"],
      ["failover", "Sentinel and failover"],
      ["drivers/cluster", "Redis Cluster"],
      ["redlock", "Redlock"],
      ["drivers/postgres", "PostgreSQL"],
      ["drivers/mysql", "MySQL and MariaDB"],
      ["drivers/etcd", "etcd"],
      ["drivers/zookeeper", "ZooKeeper"],
      ["drivers/nacos", "Nacos"],
      ["drivers/upstash", "Upstash"],
      ["drivers/memory", "Memory"],
      ["drivers/connect", "By a URL"],
    ],
  },
  {
    text: "Beside locks",
    items: [
      ["fencing", "Fencing"],
      ["optimistic", "Optimistic updates"],
      ["routing", "Routing"],
      ["testing", "Testing"],
    ],
  },
  {
    text: "Recipes",
    items: [
      ["recipes/migrations", "Migrations by one pod"],
      ["recipes/idempotency", "Idempotent requests"],
      ["recipes/bullmq", "BullMQ"],
      ["recipes/effect", "Effect"],
      ["recipes/medusa", "Medusa"],
      ["recipes/terraform", "Terraform"],
      ["ci", "CI"],
    ],
  },
  {
    text: "Programs",
    items: [
      ["service", "Lock service"],
      ["console", "Web console"],
      ["edge", "Workers and browsers"],
      ["cli", "Command line"],
      ["deploying", "Deploying"],
    ],
  },
  {
    text: "Operation",
    items: [
      ["observability", "Observability"],
      ["alerts", "Alerts"],
      ["security", "Security"],
      ["performance", "Performance"],
      ["capacity", "Capacity"],
      ["upgrading", "Upgrading"],
    ],
  },
  {
    text: "Beside other libraries",
    items: [
      ["interop", "One lock for several libraries"],
      ["migrating/redlock", "From redlock"],
      ["migrating/redis-semaphore", "From redis-semaphore"],
      ["migrating/sesamecare-redlock", "From @sesamecare-oss/redlock"],
      ["migrating/redlock-universal", "From redlock-universal"],
      ["migrating/verrou", "From @verrou/core"],
      ["migrating/async-lock", "From async-lock"],
    ],
  },
  {
    text: "Maintainers",
    items: [
      ["maintainers/protocol", "Protocol on Redis"],
      ["maintainers/verification", "Verification"],
      ["maintainers/releasing", "Releasing"],
    ],
  },
];
