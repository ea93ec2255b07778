/**
 * Where links begin that stand in answers. Never where a request says that it came to: whoever sends one would choose where
 * somebody else's secret goes.
 */
import type { ApiServerConfig } from './config/config.ts'

export interface Links {
  /** Where the console is; undefined: nobody said where, so that no page of it can be come back to. */
  readonly console: string | undefined
  /** The URL of a page: below the console, else below the public URL, else below where we listen. `path` begins with a slash. */
  readonly page: (path: string) => string
  /** The URL of a call: below the public URL, else below where we listen. `path` begins with a slash. */
  readonly call: (path: string) => string
}

/** @param listening answers the URL that the server listens at; asked once somebody calls */
export const linksOf = (
  { consoleUrl, publicUrl }: Pick<ApiServerConfig, 'consoleUrl' | 'publicUrl'>,
  listening: () => string,
): Links => {
  const api = (): string => publicUrl || listening()
  return {
    // Without a console of its own it is served at the public URL.
    console: consoleUrl || publicUrl || undefined,
    page: path => (consoleUrl || api()) + path,
    call: path => api() + path,
  }
}
