/** As much of autocannon as is used here; it brings no types. */
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly connections: number
    /** Seconds. */
    readonly duration: number
    readonly headers: Readonly<Record<string, string>>
  }
  interface Result {
    readonly non2xx: number
    readonly errors: number
    readonly requests: { readonly total: number; readonly average: number }
  }
  export default function autocannon(options: Options): Promise<Result>
}
