// From the figures of executions to points of a chart, oldest first.
import type { Schemas } from '../../api/client';
import { originText } from '../labels';

export interface Point {
  id: string;
  at: number;
  name: string;
  rate: number | null;
  interval: [number, number] | null;
  passed: number;
  of: number;
  errored: number;
  tokens: number | null;
  /** Outside them a rate is hardly chance; only where a rate is expected. */
  lowLimit?: number | null;
  highLimit?: number | null;
}

export function pointsOf(figures: Schemas['ExecutionFigures'][]): Point[] {
  return figures
    .filter((one) => one.id !== null && one.counts.finished > 0)
    .map((one) => {
      const { rate, low, high, passed, of } = one.passRateOfScored;
      return {
        id: one.id ?? '',
        at: Date.parse(one.createdAt),
        name: one.name ?? 'Single run',
        rate,
        interval: rate === null ? null : ([low, high] as [number, number]),
        passed,
        of,
        errored: one.counts.errored,
        tokens: one.totalTokens,
      };
    })
    .sort((a, b) => a.at - b.at);
}

/** The stretches of time of a monitor, as points. */
export function seriesPoints(series: Schemas['MonitorSeries']): Point[] {
  return series.points.map((one) => ({
    id: one.start,
    at: Date.parse(one.start),
    name: 'Conversations',
    rate: one.rate.rate,
    interval: one.rate.rate === null ? null : ([one.rate.low, one.rate.high] as [number, number]),
    passed: one.rate.passed,
    of: one.rate.of,
    errored: one.errored,
    tokens: null,
    lowLimit: one.lowLimit,
    highLimit: one.highLimit,
  }));
}

/** From the history of a scenario or an evaluator to points: shares, or means of what was measured. */
export function historyPoints(history: Schemas['HistoryPoint'][]): Point[] {
  const points = history.map((one): Point => {
    const { rate } = one;
    const low = rate ? rate.low : one.low;
    const high = rate ? rate.high : one.high;
    return {
      id: one.executionId,
      at: Date.parse(one.createdAt),
      name: originText(one.labels) || 'Execution',
      rate: rate ? rate.rate : one.mean,
      interval: low === null || high === null ? null : [low, high],
      passed: rate?.passed ?? 0,
      of: rate?.of ?? one.values,
      errored: one.errored,
      tokens: null,
    };
  });
  // Ids are made by several machines, whose clocks may differ.
  return points.sort((a, b) => a.at - b.at);
}
