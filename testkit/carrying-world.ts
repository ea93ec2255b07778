/** Commands whose writes are carried to a store: for tests of what is written through. Tests may disturb the carrier's calls. */
import assert from 'node:assert/strict'
import { createEnvironment } from '../apiserver/commands/create-environment.ts'
import type { CommandDependencies } from '../apiserver/commands/dependencies.ts'
import type { CreateEnvironmentBody } from '../apiserver/contract/environments.ts'
import { startDispatchAndProjection } from '../apiserver/dispatch/start-dispatch-and-projection.ts'
import { type EnvironmentRow, findEnvironment } from '../apiserver/store/environments.ts'
import type { Environment } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { silentLog } from '../runtime/log/log.ts'
import { type CommandWorld, commandWorld, createBody, pathOf } from './command-world.ts'
import { storeDatabase } from './embedded-store.ts'
import { type Faults, faultyStore } from './faulty-store.ts'
import { OPERATOR_NAMESPACE } from './standin-operator.ts'

export class CarryingWorld {
  readonly world: CommandWorld
  /** The dependencies of a process that also carries what its commands write. */
  readonly deps: CommandDependencies
  /** Everybody else's client of the store. */
  readonly kubectl: EmbeddedResourceStore
  /** What happens around the calls of the process' own client. */
  faults: Faults = {}
  #serial = 0
  readonly #stop: (() => Promise<void>)[]

  private constructor(
    world: CommandWorld,
    deps: CommandDependencies,
    kubectl: EmbeddedResourceStore,
    stop: (() => Promise<void>)[],
  ) {
    this.world = world
    this.deps = deps
    this.kubectl = kubectl
    this.#stop = stop
  }

  static async start(): Promise<CarryingWorld> {
    const url = await storeDatabase()
    const own = new EmbeddedResourceStore({ url, clientName: 'svc-apiserver' })
    const kubectl = new EmbeddedResourceStore({ url, clientName: 'kubectl' })
    const world = await commandWorld()
    const store = faultyStore(own, {
      before: call => carrying.faults.before?.(call),
      after: call => carrying.faults.after?.(call),
      reading: () => carrying.faults.reading?.(),
    })
    const service = startDispatchAndProjection({
      database: world.plane.database,
      store,
      log: silentLog,
      config: {
        databaseUrl: world.plane.url('svc_api'),
        operatorNamespace: OPERATOR_NAMESPACE,
        clientName: 'svc-apiserver',
      },
    })
    const deps: CommandDependencies = { ...world.deps, store, wakeDispatcher: row => service.wake(row) }
    const stop = [() => service.stop(), () => world.stop(), () => own.close(), () => kubectl.close()]
    const carrying = new CarryingWorld(world, deps, kubectl, stop)
    await service.ready()
    return carrying
  }

  /** Creates an environment and waits until its resource is there. Answers its id. */
  async make(more: Partial<CreateEnvironmentBody> = {}, as: CommandDependencies = this.deps): Promise<string> {
    const id = this.freshId()
    const body = createBody(id, { source_environment_id: null, ...more })
    await createEnvironment(as, this.world.call(this.world.owner), body)
    for (;;) if ((await this.rowOf(id)).uid !== null) return id
  }

  freshId(): string {
    return `pr-${++this.#serial}`
  }

  async rowOf(id: string): Promise<EnvironmentRow> {
    const row = await findEnvironment(this.world.plane.database, pathOf(id))
    assert.ok(row)
    return row
  }

  /** The resource, as everybody else sees it. */
  async resourceOf(id: string): Promise<Environment> {
    const { namespace, resourceName: name } = await this.rowOf(id)
    const found = await this.kubectl.get(environmentType, { namespace, name })
    assert.ok(found)
    return found
  }

  async stop(): Promise<void> {
    for (const stop of this.#stop) await stop()
  }
}
