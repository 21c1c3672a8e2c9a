import { render } from "preact";

import { hrefOf, pages, route, startRouter } from "./router.ts";
import { saveTheme, themes } from "./theme.ts";
import "./styles/main.css";

function App() {
  return (
    <main id="main" data-page={route.value.page}>
      <nav>
        {pages.map((page) => (
          <a key={page} href={hrefOf(page)}>
            {page}
          </a>
        ))}
      </nav>
      {themes.map((theme) => (
        <button key={theme} type="button" onClick={() => saveTheme(theme)}>
          {theme}
        </button>
      ))}
    </main>
  );
}

startRouter();
render(<App />, document.getElementById("app") as HTMLElement);
