/** The changes that an operator makes for one environment, as a proxy before the API server sees them. */
import type { Exchange, FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'

const ELSEWHERE = new Set(['leases', 'events'])
/** In no namespace; only the environment that something is asked of has its volume changed. */
const VOLUMES = 'persistentvolumes'

/** Counts, and acts on the n-th: after it was made, and before its maker hears of it. */
export class CountedChanges {
  readonly #seen: string[] = []
  readonly #rule: { remove(): void }

  /** Counts what is changed in these namespaces, and of volumes, from now on. */
  constructor(
    proxy: FaultProxy,
    namespaces: readonly string[],
    at?: { readonly count: number; readonly act: () => void },
  ) {
    const isCounted = ({ mutation, resource, path }: Exchange): boolean =>
      mutation !== undefined &&
      !ELSEWHERE.has(resource) &&
      (resource === VOLUMES || namespaces.some(namespace => `${path}/`.includes(`/namespaces/${namespace}/`)))
    this.#rule = proxy.onAnswer(isCounted, ({ verb, path }) => {
      this.#seen.push(`${verb} ${path}`)
      if (this.#seen.length !== at?.count) return Promise.resolve('pass')
      at.act()
      return Promise.resolve('drop')
    })
  }

  /** Each one so far. */
  get seen(): readonly string[] {
    return this.#seen
  }

  /** Counts no more. */
  end(): void {
    this.#rule.remove()
  }
}
