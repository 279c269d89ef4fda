// Source of the page's data that is a model inside the file: what `heedful serve` answers, computed beside the page.
import { refuseLong, TASK_VIEWS } from '../app/api.js';
import { h } from '../app/dom.js';
import { direction, scoreName, t } from '../app/text.js';

// `facts` of the model are those of its file, known from the beginning; `connecting` gives its engine.
export function localSource(facts, connecting) {
  connecting.catch(() => {}); // each request says so
  return {
    task: facts.task,
    views: (task) => (task === 'translation' ? ['translate', 'inside', 'search', 'learn'] : [TASK_VIEWS[task], 'learn']),
    models: () => connecting.then(() => ({ models: [{ name: facts.name, task: facts.task, languages: facts.languages, kind: facts.kind }] })),
    delay: 30,
    training: async () => ({ title: 'tryThese', samples: facts.examples.map((one) => ({ reference: '', ...(typeof one === 'string' ? { source: one } : one) })) }),
    view: async (request) => {
      refuseLong(request);
      return (await connecting).ask(request);
    },
    about: () => h('footer', { class: 'about small faint' }, [facts.name, direction(facts.languages), facts.scores.length && t('onTest', facts.scores.map((one) => `${scoreName(one)} ${one.value}`).join(', ')), t('licence', facts.license || t('unnamed')), t('insideFile'), facts.weights && t('weightBits', facts.weights.match(/\d+$/)), `heedful ${facts.heedful}`, facts.runtime].filter(Boolean).join(' · ')),
  };
}
