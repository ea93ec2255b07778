/** Somebody who has an account, and gets hold of everything by which one can act as it. */
import assert from 'node:assert/strict'
import { DEVICE_GRANT } from '../apiserver/contract/device-flow.ts'
import { ApiClient } from './api-client.ts'
import type { TestApiServer } from './api-server.ts'
import { fromAnywhere, type TestSession } from './sign-in.ts'

/** What each thing in hand opens now: a status, and for the device the code of its poll. */
export interface Reach {
  readonly session: number
  readonly personal: number
  readonly agent: number
  readonly device: string
}

export const EVERYTHING: Reach = { session: 200, personal: 200, agent: 200, device: 'its token' }
export const NOTHING: Reach = { session: 401, personal: 401, agent: 401, device: 'access_denied' }

export interface EarlierHolder {
  readonly personal: ApiClient
  /** Asks with each thing; fetches the device's token where it still is to be had. */
  reach(): Promise<Reach>
}

/** A session, a personal and an agent's token, and a grant that the device has not fetched yet; all by the API. */
export const holdEverything = async (api: TestApiServer, { client: session }: TestSession): Promise<EarlierHolder> => {
  const made = async (body: object): Promise<ApiClient> => {
    const answer = await session.call('createToken', { body })
    assert.equal(answer.status, 201, answer.text)
    return new ApiClient(api.url, answer.body.token)
  }
  const personal = await made({ name: 'kept' })
  const agent = await made({ name: 'kept too', scopes: ['read'] })
  const asked = await api.nobody.call('requestDeviceCode', { body: { client_name: 'coder' }, headers: fromAnywhere() })
  const granted = await session.call('approveDevice', {
    body: { user_code: asked.body.user_code, scopes: ['read'] },
    headers: fromAnywhere(),
  })
  assert.equal(granted.status, 200, granted.text)
  return {
    personal,
    reach: async () => {
      const polled = await api.nobody.call('pollDeviceToken', {
        body: { grant_type: DEVICE_GRANT, device_code: asked.body.device_code },
      })
      return {
        session: (await session.call('getSession')).status,
        personal: (await personal.call('listTokens')).status,
        agent: (await agent.call('listOrganizations')).status,
        device: polled.status === 200 ? 'its token' : polled.body.code,
      }
    },
  }
}
