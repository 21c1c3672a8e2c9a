import { contents } from "../contents.mjs";
import { base, out, pages, repository, version } from "../settings.mjs";

const entries = (process.env["HOLDFAST_SITE_ENTRIES"] ?? "").split(" ").filter(Boolean);

/** Anchors as on GitHub, where the pages of docs/ are read too. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

export default {
  title: "Holdfast",
  description: "Distributed locks for TypeScript, with fencing tokens, fair queues and reported losses",
  lang: "en",
  base,
  srcDir: pages,
  outDir: out,
  cacheDir: "../site/.cache/vitepress",
  cleanUrls: true,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  markdown: { theme: { light: "github-light", dark: "github-dark" }, anchor: { slugify } },
  vite: { publicDir: "../../public", build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    logo: "/icon.svg",
    search: { provider: "local" },
    outline: [2, 3],
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: "Edit this page" },
    docFooter: { prev: false, next: false },
    nav: [
      { text: "Guide", link: "/guide" },
      { text: "Drivers", link: "/drivers/redis", activeMatch: "^/(drivers|redlock|failover)" },
      { text: "Reference", link: "/reference/", activeMatch: "^/reference" },
      { text: version, link: `${repository}/blob/main/CHANGELOG.md` },
    ],
    sidebar: {
      "/": contents.map(({ text, items }) => ({
        text,
        collapsed: text === "Maintainers",
        items: items.map(([path, label]) => ({ text: label, link: `/${path}` })),
      })),
      "/reference/": [
        {
          text: "Reference",
          items: entries.map((entry) => ({ text: entry, link: `/reference/${entry}` })),
        },
      ],
    },
  },
};
