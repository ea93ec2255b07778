import { quantityToBytes } from '../../lib/model/quantity.ts'
import type { PlanConfig } from '../config/config.ts'
import type { UsageRecord } from '../contract/environments.ts'
import type { EnvironmentRow } from '../store/environments.ts'
import type { MeasuredUsage } from '../tenant/measure-usage.ts'

type Cap = UsageRecord['caps'][number]

/** The calendar month in UTC that a moment lies in. */
const monthOf = (now: Date): UsageRecord['billing_period'] => ({
  start: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)).toISOString(),
  end: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString(),
})

const cap = (name: string, unit: Cap['unit'], limit: number | null, used: number | null): Cap => ({
  name,
  unit,
  limit,
  used,
  base_limit: limit,
})

/**
 * What an environment uses of its plan. The figures in force, reported by the operator, win over the plan's. Of
 * what this release does not offer nothing is used and there is no cap; null says that nobody measures it.
 */
export const usageView = (
  row: Pick<EnvironmentRow, 'kind' | 'phase' | 'status'>,
  plan: PlanConfig,
  measured: MeasuredUsage | undefined,
  now: Date,
): UsageRecord => {
  const figures = row.status?.resources ?? plan.resources[row.kind]
  const connections = row.phase === 'suspended' ? 0 : (measured?.connections ?? null)
  return {
    plan: plan.name,
    flat_price: { amount_cents: plan.priceCents, currency: plan.currency, interval: 'month' },
    billing_period: monthOf(now),
    caps: [
      cap('database_bytes', 'bytes', quantityToBytes(figures.storage), measured?.databaseBytes ?? null),
      cap('storage_bytes', 'bytes', null, 0),
      cap('egress_bytes', 'bytes', null, null),
      cap('connections', 'count', figures.maxConnections, connections),
      cap('queue_messages', 'count', null, 0),
      cap('monthly_active_users', 'count', null, 0),
    ],
    capacity_packs: [],
    measured_at: now.toISOString(),
  }
}
