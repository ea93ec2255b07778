/** What the contracts of the projector share. */
import type { EnvironmentSpec } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import type { OpenPlace } from './dispatch-places.ts'
import { DispatchWorld, keyOfEnvironment } from './dispatch-world.ts'

/** Registers hooks that give each test a world with an operator, and what people do in it. */
export const projectorScene = (openPlace: OpenPlace) => {
  let world: DispatchWorld
  let operator: { paused: boolean }

  beforeEach(async () => {
    world = await DispatchWorld.create(openPlace)
    operator = world.startOperator()
  })
  afterEach(() => world.close())

  const ready = async (id: string, spec: Partial<EnvironmentSpec> = {}) => {
    await world.requestCreate(id, spec)
    const service = world.replica()
    service.wake()
    await world.until(id, ({ phase }) => phase === 'ready')
    return service
  }
  const edit = async (id: string, spec: Readonly<Record<string, unknown>>) => {
    const { metadata } = await world.mustResource(id)
    return world.kubectl.patch(environmentType, keyOfEnvironment(id), { spec }, { uid: metadata.uid })
  }
  const deleteByHand = async (id: string) => {
    const { metadata } = await world.mustResource(id)
    await world.kubectl.delete(environmentType, keyOfEnvironment(id), { uid: metadata.uid })
  }
  const brief = async () => (await world.audit()).map(({ actor, action, resource }) => `${actor} ${action} ${resource}`)
  const operationsOf = async (id: string) =>
    (await world.rows(id)).operations.map(({ kind, state, actor }) => `${kind} ${state} ${actor}`)

  return {
    get world() {
      return world
    },
    get operator() {
      return operator
    },
    /** Makes an environment and waits until it is ready. @returns the replica that saw to it */
    ready,
    edit,
    deleteByHand,
    /** The audit log, a line an event. */
    brief,
    operationsOf,
  }
}
