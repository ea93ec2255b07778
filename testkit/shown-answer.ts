import type { ApiAnswer } from './api-answers.ts'

/** All that an answer shows of itself, but for what differs between any two: two that look alike tell the same. */
export const shownOf = ({ status, text, headers }: Pick<ApiAnswer, 'status' | 'text' | 'headers'>): string =>
  JSON.stringify({ status, text, headers: [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name)) })
