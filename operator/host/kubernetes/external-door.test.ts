import assert from 'node:assert/strict'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { externalHost, externalOf, isUnproven } from './external-door.ts'
import type { Exposure } from './host-settings.ts'
import type { Service } from './object-types.ts'

const NODES: Exposure = { type: 'NodePort', host: 'nodes.example' }
const BALANCER: Exposure = { type: 'LoadBalancer' }
const NONE: Exposure = { type: 'None' }
const exposed = (provenHost?: string): Service => ({
  metadata: { annotations: provenHost === undefined ? {} : { [ANNOTATIONS.provenHost]: provenHost } },
  spec: { ports: [{ port: 5432, nodePort: 30123 }] },
  status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
})

describe('where clients outside the cluster connect', () => {
  it('is what the node port or the load balancer says, once there is one', () => {
    assert.deepEqual(externalOf(exposed(), NODES), { host: 'nodes.example', port: 30123 })
    assert.deepEqual(externalOf(exposed(), BALANCER), { host: '192.0.2.1', port: 5432 })
    assert.equal(externalOf({ spec: {} }, NODES), undefined)
    assert.equal(externalOf({ spec: {} }, BALANCER), undefined)
    assert.equal(externalOf(exposed(), NONE), undefined)
  })

  it('has a name that is known before there is a Service, where it is that of the nodes', () => {
    assert.equal(externalHost(undefined, NODES), 'nodes.example')
    assert.equal(externalHost(undefined, BALANCER), undefined)
    assert.equal(externalHost(exposed(), NONE), undefined)
  })

  const rows: readonly (readonly [why: string, service: Service | undefined, exposure: Exposure, unproven: boolean])[] =
    [
      ['nothing is exposed', exposed(), NONE, false],
      ['there is no Service yet', undefined, NODES, true],
      ['no server was seen to prove it', exposed(), NODES, true],
      ['one was', exposed('nodes.example'), NODES, false],
      ['one proved the name from before', exposed('old.example'), NODES, true],
      ['the load balancer has no address yet', { spec: {} }, BALANCER, false],
      ['it has one', exposed(), BALANCER, true],
      ['and that was proven', exposed('192.0.2.1'), BALANCER, false],
    ]
  for (const [why, service, exposure, unproven] of rows)
    it(`${unproven ? 'is to be proven' : 'needs no proof'}: ${why}`, () =>
      assert.equal(isUnproven(service, exposure), unproven))
})
