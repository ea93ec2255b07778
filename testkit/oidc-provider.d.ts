/** What of `oidc-provider`, which has no types, its tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface SavedToken {
    save(): Promise<string>
    destroy(): Promise<void>
  }
  type NewToken = new (fields: Readonly<Record<string, unknown>>) => SavedToken

  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    readonly AccessToken: NewToken & { find(value: string): Promise<SavedToken | undefined> }
    readonly RefreshToken: NewToken
    readonly ClientCredentials: NewToken
    readonly Client: { find(id: string): Promise<object | undefined> }
    readonly ResourceServer: new (
      id: string,
      fields: Readonly<Record<string, unknown>>,
    ) => object
    proxy: boolean
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    on(event: string, listener: (...given: readonly unknown[]) => void): this
  }
}
