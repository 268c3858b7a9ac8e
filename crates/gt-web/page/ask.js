// Asks twice before something is done, in a dialog that the keyboard reaches.

import { element, setText } from './elements.js';

/** The time in which a second click of the same mouse button does not count, in milliseconds. */
const PAUSE = 600;

const title = element('h2', { id: 'ask-title', tabindex: -1, 'aria-describedby': 'ask-what' });
const what = element('p', { class: 'name', id: 'ask-what' });
const effect = element('p', { id: 'ask-effect' });
const fields = element('div');
const no = element('button', { type: 'button' }, 'Cancel');
const yes = element('button', { type: 'submit' });
const form = element('form', {}, title, what, effect, fields, element('p', { class: 'controls' }, no, yes));
const dialog = element('dialog', { 'aria-labelledby': 'ask-title', 'aria-describedby': 'ask-what ask-effect' }, form);
document.body.append(dialog);

let proceed = null;
no.addEventListener('click', () => dialog.close());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  proceed(event.timeStamp);
});

/**
 * Asks whether to do something, and again whether that is meant; calls `done` with the value of the
 * field after the second yes. `verb` says what is done, `name` to whom or what, `means` what then
 * happens. With `field`, which has a `label`, a `value` and attributes, a number is asked for.
 */
export function askTwice({ verb, name, means, field, done }) {
  const input = field && element('input', { id: 'ask-field', type: 'number', required: '', step: 1, ...field.attributes });
  if (input) input.value = field.value;
  fields.replaceChildren(...(input
    ? [element('p', { class: 'choice' }, element('label', { for: 'ask-field' }, field.label), ' ', input)] : []));
  setText(title, `${verb}?`);
  setText(what, name);
  setText(effect, means);
  setText(yes, verb);
  proceed = (first) => {
    const value = input ? input.valueAsNumber : null;
    const given = input ? ` (${field.label.toLowerCase()}: ${value})` : '';
    fields.replaceChildren();
    setText(title, 'Is this what you mean?');
    setText(what, `${verb}: ${name}${given}`);
    setText(yes, `Yes, ${verb.toLowerCase()}`);
    // Screen readers read the second question. A second press of the same key does not answer it.
    title.focus();
    proceed = (second) => {
      // A double click answers the first question alone.
      if (second - first < PAUSE) return;
      dialog.close();
      done(value);
    };
  };
  dialog.showModal();
  (input ?? no).focus();
}
