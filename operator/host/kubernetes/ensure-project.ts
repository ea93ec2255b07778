/** Sees to what a project's namespace needs: before the first environment in it, once an hour, and whenever it is not as it should be. */
import { settleObject } from '../../../runtime/kubernetes/settle-object.ts'
import type { ClusterWorld } from './cluster-world.ts'
import type { Correction } from './correction.ts'
import { type ProjectObject, projectObjects } from './project-objects.ts'

const LOOK_AGAIN_MS = 3_600_000

export class Projects {
  readonly #world: ClusterWorld
  readonly #done = new Map<string, { readonly until: number; readonly work: Promise<readonly Correction[]> }>()

  constructor(world: ClusterWorld) {
    this.#world = world
  }

  /** @throws StoreError */
  async ensure(namespace: string): Promise<void> {
    const now = this.#world.now().getTime()
    const known = this.#done.get(namespace)
    await (known !== undefined && now < known.until ? known.work : this.#begin(namespace))
  }

  /** Looks at once. @returns what was not as it should be @throws StoreError */
  repair(namespace: string): Promise<readonly Correction[]> {
    return this.#begin(namespace)
  }

  /** Looks again at the next `ensure`. */
  forget(namespace: string): void {
    this.#done.delete(namespace)
  }

  #begin(namespace: string): Promise<readonly Correction[]> {
    const work = this.#ensure(namespace)
    const until = this.#world.now().getTime() + LOOK_AGAIN_MS * (0.9 + Math.random() / 5)
    this.#done.set(namespace, { until, work })
    work.catch(() => this.#done.delete(namespace))
    return work
  }

  async #ensure(namespace: string): Promise<readonly Correction[]> {
    const { bindings, others } = projectObjects(namespace, this.#world.settings)
    const corrections: Correction[] = []
    const settle = async (wish: ProjectObject): Promise<void> => {
      const how = await this.#settle(wish)
      const { type, object } = wish
      if (how !== 'as it was') corrections.push({ kind: type.kind, name: object.metadata?.name ?? '', how })
    }
    for (const binding of bindings) await settle(binding)
    const needed = others.filter(other => other.needed)
    await Promise.all(needed.map(settle))
    // Where nothing of ours was, there is nothing from before either.
    const isNew = corrections.filter(({ how }) => how === 'made').length === bindings.length + needed.length
    if (!isNew) await Promise.all(others.filter(other => !other.needed).map(settle))
    return corrections
  }

  async #settle({ type, object, needed }: ProjectObject): ReturnType<typeof settleObject> {
    const { objects } = this.#world
    const { namespace = '', name = '' } = object.metadata ?? {}
    const live = await objects.get(type, { namespace, name })
    if (live === undefined && !needed) return 'as it was'
    return settleObject(object, live, wish => objects.apply(type, wish))
  }
}
