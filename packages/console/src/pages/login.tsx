import { useSignal } from "@preact/signals";

import { needsToken } from "../api/client.ts";
import { login, startError } from "../session.ts";
import { Mark } from "../ui/icons.tsx";

/** Asks for a token of the service. */
export function LoginPage() {
  const token = useSignal("");
  const isBusy = useSignal(false);
  const isRefused = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    isBusy.value = true;
    await login(token.value.trim());
    isBusy.value = false;
    isRefused.value = needsToken.value;
  };
  return (
    <form class="login" onSubmit={(event) => void submit(event)}>
      <Mark />
      <h1>Holdfast</h1>
      <p class="muted">The service asks for a token. It stays in this tab, and ends with it.</p>
      <label class="field">
        <span>Token</span>
        <input
          type="password"
          name="token"
          data-testid="login-token"
          autocomplete="off"
          autofocus
          value={token.value}
          onInput={({ currentTarget }) => (token.value = currentTarget.value)}
        />
      </label>
      {isRefused.value && (
        <p class="problem" role="alert">
          {startError.value === ""
            ? "The service refused the token: it is unknown or has expired."
            : startError.value}
        </p>
      )}
      <button
        type="submit"
        class="primary"
        data-testid="login-submit"
        disabled={token.value.trim() === "" || isBusy.value}
      >
        Sign in
      </button>
    </form>
  );
}
