import {
  hostScene,
  killServer,
  processIn,
  queryClaim,
  queryService,
  tracesOf,
} from '../../../testkit/kubernetes/kubernetes-host.ts'
import { TEST_SPEC } from '../../../testkit/local-host.ts'
import { describeHost } from '../host.contract.ts'

describeHost('kubernetes', async () => {
  const scene = await hostScene('host')
  let host = await scene.open()
  return {
    host,
    spec: TEST_SPEC,
    deadlineMs: 60_000,
    place: ref => scene.place(ref.path.environmentId),
    restartControlPlane: async () => {
      await host.stopAll()
      return (host = await scene.open())
    },
    crash: ref => killServer(scene, ref),
    processOf: async ref => processIn(await scene.podOf(ref)),
    query: (observed, credentials, sql) => queryService(scene, host, observed.endpoint!.host, credentials.app, sql),
    queryRetained: (retainedAt, sql) => queryClaim(scene, retainedAt.split('/').at(-1)!, sql),
    traces: ref => tracesOf(scene, ref),
    dispose: async () => {
      await host.stopAll()
      await scene.close()
    },
  }
})
